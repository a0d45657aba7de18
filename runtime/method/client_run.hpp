/// client_run: one round of one client at work, stage by stage.
#pragma once
#include "runtime/method/strategy.hpp"
#include <variant>
namespace mneme {

/// Why a round has no result, in words; thrown by the round or by a job it did not handle.
struct round_failure {
  job_id last_job{};
  client_id client{};
  round_id round{};
  std::string reason{};
};
/// What happens next in a round: more jobs, the end, or an error.
using round_step = std::variant<plan, client_result, round_failure>;

/// Neither moves nor copies: the coroutine points into it. Destroying it at any time is safe and
/// leaves no trace. Needs no actor: tests drive it in a loop.
class client_run {
public:
  /// @param store outlives it; null: the method makes no rows
  client_run(const strategy& method, assignment assigned, row_store* store = nullptr);
  client_run(const client_run&) = delete;
  client_run& operator=(const client_run&) = delete;
  [[nodiscard]] const assignment& assigned() const noexcept { return assigned_; }
  [[nodiscard]] std::uint32_t stage() const noexcept { return desk_.stage(); }
  /// Runs to the first plan or to the end. Called once, first.
  [[nodiscard]] round_step start();
  /// Runs on, with the outcomes of the last plan, in its order.
  [[nodiscard]] round_step resume(outcomes results);

private:
  template <class Act>
  round_step advance(Act act);
  void note_losses(const outcomes& results);
  void note_losses(const train_output& trained);
  void note_losses_of_program(const tensor_map& outcome);
  [[nodiscard]] training_losses& losses();

  assignment assigned_;
  std::shared_ptr<training_losses> losses_; // of the jobs so far; null: there are none
  job_desk desk_;
  client_context context_;
  task<client_result> round_; // last: destroyed before what it points to
};

} // namespace mneme
