/// generator_run: runs a Python generator that yields jobs, stage by stage.
#pragma once
#include "tools/python/engine/job_requests.hpp"
#include "tools/python/engine/user_errors.hpp"
#include <optional>
namespace mneme {

/// A generator, or the return value of a plain function. All calls require the GIL.
class generator_run {
public:
  /// @param where name of the function for messages: "client_round"
  generator_run(nb::object started, const char* where);

  /// Resumes the generator with the results of the last jobs, until it yields or returns. Throws user_error() if it
  /// raises an exception or yields something other than jobs.
  void advance(const std::vector<nb::object>& results);
  [[nodiscard]] bool is_over() const noexcept { return value_.is_valid(); }
  /// Jobs that the generator yielded last.
  [[nodiscard]] const std::vector<job_request*>& jobs() const noexcept { return jobs_; }
  /// Return value of the generator. @pre is_over()
  [[nodiscard]] const nb::object& value() const noexcept { return value_; }
  /// Returns an error about a yielded or returned value, with the generator's current line.
  [[nodiscard]] std::runtime_error error(const std::string& text) const { return user_error(generator_, where_, text); }

private:
  void take_yielded(nb::object yielded);
  job_request* job_of(nb::handle object) const;

  nb::object generator_, yielded_, value_;
  std::vector<job_request*> jobs_; // owned by yielded_
  bool is_list_ = false;           // true: a tuple or list was yielded, so a tuple of results is sent
  const char* where_;
};

/// Moves the content of the requests into a plan for the engine.
[[nodiscard]] plan make_stage(const std::vector<job_request*>& requests);
/// Results of the jobs of a stage. Throws job_error for the first failed one. @param owner id of the stage's first job
[[nodiscard]] std::vector<work_output> outputs_of(outcomes results, job_id owner);
[[nodiscard]] std::vector<nb::object> objects_of(const std::vector<work_output>& outputs);

} // namespace mneme
