/// server: hosts the server half of the method, one step at a time, and evaluates it.
#pragma once
#include "actors/compute/step_host.hpp"
namespace mneme {

class server_state {
public:
  static constexpr const char* name = "mneme.server";
  server_state(server_actor::pointer self, run_context_ref context, const std::shared_ptr<batch_queues>& queues,
               std::vector<worker_actor> workers, const recorder_actor& recorder);
  server_actor::behavior_type make_behavior();

private:
  caf::result<task_plan> open(const open_task& in);
  caf::result<closed_round> close(const close_round& in);
  [[nodiscard]] digest128 model_digest() const;
  opened_round broadcast_of(const round_place& place);
  caf::result<evaluated> evaluate_model(const evaluate& in);
  learnt named_model() const;
  caf::result<fairness> measure();

  [[nodiscard]] plan evaluation_plan(const evaluate& in) const;
  [[nodiscard]] bool is_of_all_tasks(const evaluate& in) const;
  void note_answers(const task_rows& task, std::size_t first, const evaluate_output& part);
  void count_classes(const task_rows& task, std::size_t first, const evaluate_output& part,
                     std::vector<class_tally>& per_class) const;
  [[nodiscard]] tensors_ref named_weights() const;
  [[nodiscard]] std::vector<double> client_accuracies(const std::vector<evaluate_output>& cells) const;

  server_actor::pointer self_;
  run_context_ref context_;
  step_host steps_;
  std::unique_ptr<central_rows> rows_;
  std::unique_ptr<server_half> half_;
  std::vector<std::int32_t> labels_, answers_; // of all test rows, when they were evaluated last
};

} // namespace mneme
