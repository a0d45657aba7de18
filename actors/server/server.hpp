/// server: hosts the server half of the method, one step at a time, and evaluates it.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/protocol/interfaces.hpp"
#include "actors/protocol/run_context.hpp"
#include <caf/typed_response_promise.hpp>
#include <functional>
#include <optional>
namespace mneme {

class server_state {
public:
  static constexpr const char* name = "mneme.server";
  server_state(server_actor::pointer self, run_context_ref context, std::shared_ptr<batch_queues> queues,
               std::vector<worker_actor> workers, recorder_actor recorder);
  server_actor::behavior_type make_behavior();

private:
  /// One step of the server half at work: a coroutine and what to do with its value.
  template <class T>
  struct server_run {
    job_desk desk{};
    server_context context;
    server_run(const central_rows& rows, row_store& made) : context(desk, &rows, &made) {}
    round_place where{};
    std::optional<task<T>> step{};
    std::function<void(task<T>&)> ended{}; // takes the value, or throws what the step threw
    std::function<void(caf::error)> failed{};
  };

  caf::result<task_plan> open(const open_task& in);
  caf::result<closed_round> close(const close_round& in);
  [[nodiscard]] digest128 model_digest() const;
  opened_round broadcast_of(const round_place& place);
  caf::result<evaluated> evaluate_model(const evaluate& in);
  learnt named_model() const;
  caf::result<fairness> measure();

  template <class T>
  void drive(std::shared_ptr<server_run<T>> run, const std::function<void()>& advance);
  template <class T>
  void run_jobs(std::shared_ptr<server_run<T>> run, plan wanted);
  /// Runs the jobs and hands over all outcomes together.
  void run_all(plan wanted, std::function<void(outcomes)> then);
  [[nodiscard]] std::vector<ready_batch> batches_of(std::uint64_t number, plan wanted) const;
  [[nodiscard]] std::int64_t width_of(const work& request) const;
  void take(batch_done& in);
  [[nodiscard]] plan evaluation_plan(const evaluate& in) const;
  [[nodiscard]] std::vector<double> client_accuracies(const std::vector<evaluate_output>& cells) const;

  server_actor::pointer self_;
  run_context_ref context_;
  std::shared_ptr<batch_queues> queues_;
  std::vector<worker_actor> workers_;
  recorder_actor recorder_;
  std::unique_ptr<central_rows> rows_;
  std::unique_ptr<server_half> half_;
  /// Jobs that are at work, by the number of their plan.
  struct running_plan {
    outcomes known{};
    std::size_t missing = 0;
    std::function<void(outcomes)> then{};
  };
  std::map<std::uint64_t, running_plan> plans_;
  std::uint64_t next_plan_ = 0;
  bool interrupted_ = false; // in the middle of a step
};

} // namespace mneme
