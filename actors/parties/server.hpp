/// server: actor that hosts the server half of a method, runs its steps one at a time, and evaluates its predictor.
#pragma once
#include "actors/parties/party_host.hpp"
#include "actors/parties/personal_evaluation.hpp"
namespace mneme {

class server_state {
public:
  static constexpr const char* name = "mneme.server";
  server_state(server_actor::pointer self, const party_setup& setup);
  server_actor::behavior_type make_behavior();

private:
  caf::result<task_plan> open(const open_task& in);
  caf::result<step_taken> close(const take_step& in);
  opened_round broadcast_of(const round_info& info);
  caf::result<evaluated> evaluate_model(const evaluate& in);
  final_model named_model() const;
  caf::result<fairness> measure();
  caf::result<saved_state> save(save_state& in);
  caf::result<restored_state> restore(restore_state& in);
  void test_clients(const caf::typed_response_promise<evaluated>& answer, const evaluate& in, evaluated sums);

  [[nodiscard]] plan evaluation_plan(const evaluate& in) const;
  [[nodiscard]] bool is_of_all_tasks(const evaluate& in) const;
  void record_answers(const task_rows& task, std::size_t first, const evaluate_output& part);
  void count_classes(const task_rows& task, std::size_t first, const evaluate_output& part,
                     std::vector<class_tally>& per_class) const;
  [[nodiscard]] tensors_ref named_weights() const;
  [[nodiscard]] std::vector<double> client_accuracies(const std::vector<evaluate_output>& cells) const;

  server_actor::pointer self_;
  run_context_ref context_;
  party_host<server_half, &server_half::fold> party_;
  std::unique_ptr<central_rows> rows_;
  std::optional<personal_evaluation> personal_; // empty without evaluation.personal
  std::vector<std::int32_t> labels_, answers_;  // labels and predictions of all test rows in the last evaluation
};

} // namespace mneme
