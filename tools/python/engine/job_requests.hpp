/// job_requests: jobs as described in Python, and their results as passed to Python.
#pragma once
#include "runtime/method/client_context.hpp"
#include "runtime/method/strategy.hpp"
#include "tools/python/engine/objective_terms.hpp"
#include "tools/python/engine/row_sets.hpp"
namespace mneme {

// Axes: P weights of the net, n rows of a job.

/// A job described in Python and not yet yielded.
struct job_request {
  work request{};
  bool is_yielded = false; ///< Then its content has been moved.
};

/// A training objective.
struct loss_object {
  objective_terms terms{};
  loss_ref objective{}; ///< Objective of the terms.
};

/// Result of a job. Tensors are converted on first access.
struct job_result {
  work_output output{};
  nb::object weights{}; ///< Python object of the weights; null until first accessed.
};

/// Defaults for every job of a round or step.
struct job_world {
  const method_setup* setup = nullptr;
  round_place place{};
  tensors_ref start{};                      ///< Default initial weights [P]; may be null.
  nb::handle start_object{};                ///< Python object of `start`; null if Python has not seen it.
  sample_view samples{};                    ///< Default rows.
  std::shared_ptr<const row_owner> owner{}; ///< Owner of the jobs.
  rng_key stream{};                         ///< Parent of the streams that shuffle training rows.
};

/// Options of ctx.train(), ctx.extract(), ... by name.
using job_options = nb::kwargs;
/// Throws std::invalid_argument for an unknown option or an invalid value.
[[nodiscard]] job_request train_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request extract_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request statistics_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request evaluate_request(const job_world& world, const job_options& options);

/// True if both describe the same work, as the two runs of a checked round must.
[[nodiscard]] bool same_work(const work& a, const work& b);

/// Binds the classes of this header and the losses.
void bind_jobs(nb::module_& module);

} // namespace mneme
