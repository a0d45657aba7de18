/// generator_run: a Python generator that names jobs, played stage by stage.
#pragma once
#include "tools/python/engine/job_requests.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <optional>
namespace mneme {

/// One generator, or the value that a plain function returned in place of one. All calls hold the GIL.
class generator_run {
public:
  /// @param where names the function in errors: "client_round"
  generator_run(nb::object started, const char* where);

  /// Runs to the next yield or to the end, with what the last jobs ended with. Throws user_error().
  void advance(const std::vector<nb::object>& results);
  [[nodiscard]] bool is_over() const noexcept { return value_.is_valid(); }
  /// The jobs that it has yielded.
  [[nodiscard]] const std::vector<job_request*>& jobs() const noexcept { return jobs_; }
  /// What it returned. @pre is_over()
  [[nodiscard]] const nb::object& value() const noexcept { return value_; }
  /// An error about what it yielded or returned, at its line.
  [[nodiscard]] std::runtime_error error(const std::string& text) const { return user_error(generator_, where_, text); }

private:
  void take_yielded(nb::object yielded);
  job_request* job_of(nb::handle object) const;

  nb::object generator_, yielded_, value_;
  std::vector<job_request*> jobs_; // within yielded_
  bool is_list_ = false;           // several jobs in a tuple or list, so their outcomes come in a tuple
  const char* where_;
};

/// The content of the requests, for the engine.
[[nodiscard]] plan taken_stage(const std::vector<job_request*>& requests);
/// What the jobs of a stage ended with; throws job_error for the first that failed. @param owner whose jobs they are
[[nodiscard]] std::vector<work_output> outputs_of(outcomes results, job_id owner);
[[nodiscard]] std::vector<nb::object> objects_of(const std::vector<work_output>& outputs);

} // namespace mneme
