/// personal_evaluation: tests each client's own model on the client's own rows (evaluation.personal).
#pragma once
#include "actors/compute/step_runner.hpp"
#include "runtime/method/server_half.hpp"
namespace mneme {

/// Result of the tests of all clients.
struct client_tests {
  std::vector<client_test> clients{}; ///< Clients with a model of their own and test rows, ascending.
  std::string failure{};              ///< Names client and job; empty: all jobs succeeded.
  bool interrupted = false;           ///< True: the run was interrupted while a job was running.
};

/// Runs the tests as jobs of the server. Trainings of many clients are fused. A client's result depends only on the
/// server's model, its rows and its random keys, so it is the same for any number of threads.
class personal_evaluation {
public:
  /// @param run, steps must outlive this object
  personal_evaluation(const run_context& run, step_runner& steps) : run_(run), steps_(steps) {}
  /// evaluation.personal = "local": remembers the models in the uploads, one per client.
  void keep(const deliveries& in);
  /// Tests all clients and passes the result to `then`. Throws the exceptions of server_half::predict_for().
  /// @param half must outlive the tests
  void run(const evaluate& in, const server_half& half, std::function<void(client_tests)> then);
  void persist(archive& state);

private:
  struct subject;
  struct progress;
  [[nodiscard]] std::vector<subject> subjects(const evaluate& in) const;
  [[nodiscard]] plan test_jobs(const predictor& learned, const subject& tested, const evaluate& in) const;
  [[nodiscard]] train_job tuning_job(const predictor& start, const subject& tested, const evaluate& in) const;
  [[nodiscard]] predictor local_model(const predictor& shared, client_id client) const;
  [[nodiscard]] std::size_t clients_at_once() const;
  void test_next(const std::shared_ptr<progress>& now);
  void test_own_models(const std::shared_ptr<progress>& now, outcomes results);
  void add_results(const std::shared_ptr<progress>& now, const outcomes& results);

  const run_context& run_;
  step_runner& steps_;
  std::map<std::uint32_t, tensors_ref> uploads_; // with "local": the last model of each client, as it was uploaded
};

/// Returns an error for each combination of evaluation.personal with the method and the data that cannot work. @pre the
/// method is prepared
[[nodiscard]] diagnostics personal_evaluation_errors(const run_context& run);

} // namespace mneme
