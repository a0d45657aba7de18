/// client_round_runner: runs one client's round, stage by stage.
#pragma once
#include "runtime/method/strategy.hpp"
#include <variant>
namespace mneme {

/// Error of a round without a result: an exception of the round, or an unhandled error of one of its jobs.
struct round_failure {
  job_id last_job{};
  client_id client{};
  round_id round{};
  std::string reason{};
};
/// Next step of a round: more jobs, the result, or an error.
using round_step = std::variant<plan, client_result, round_failure>;

/// Cannot be moved or copied, because the coroutine points into the object. A runner may be destroyed at any time. It
/// needs no actor, so tests run it in a loop.
class client_round_runner {
public:
  /// @param store must outlive this object; null if the method creates no rows
  client_round_runner(const strategy& method, assignment assigned, generated_row_store* store = nullptr);
  client_round_runner(const client_round_runner&) = delete;
  client_round_runner& operator=(const client_round_runner&) = delete;
  [[nodiscard]] const assignment& assigned() const noexcept { return assigned_; }
  [[nodiscard]] std::uint32_t stage() const noexcept { return channel_.stage(); }
  /// Runs the round to its first plan or to its end. @pre called once, before resume()
  [[nodiscard]] round_step start();
  /// Continues with the results of the last plan, in the order of its jobs.
  [[nodiscard]] round_step resume(outcomes results);

private:
  template <class Act>
  round_step advance(Act act);
  void record_losses(const outcomes& results);
  void record_losses(const train_output& trained);
  void record_program_losses(const tensor_map& outcome);
  [[nodiscard]] training_losses& losses();

  assignment assigned_;
  std::shared_ptr<training_losses> losses_; // losses of the finished jobs; null if nothing was trained
  job_channel channel_;
  client_context context_;
  task<client_result> round_; // last member: destroyed before the objects that it points to
};

} // namespace mneme
