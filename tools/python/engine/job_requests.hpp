/// job_requests: jobs as Python names them, and what they end with, as Python sees it.
#pragma once
#include "runtime/method/client_context.hpp"
#include "runtime/method/strategy.hpp"
#include "tools/python/engine/objective_terms.hpp"
#include "tools/python/engine/row_sets.hpp"
namespace mneme {

// Axes: P weights of the net, n rows of a job.

/// A job that Python has described and not yet yielded.
struct job_request {
  work request{};
  bool is_yielded = false; ///< Its content has moved into the round.
};

/// An objective of training.
struct loss_object {
  objective_terms terms{};
  loss_ref objective{}; ///< That of the terms.
};

/// What a job ended with. Tensors become objects when they are asked for.
struct job_result {
  work_output output{};
  nb::object weights{}; ///< The object that the weights were shown as; null: they were not asked for.
};

/// What every job of a round or step has besides what Python says.
struct job_world {
  const method_setup* setup = nullptr;
  round_place place{};
  tensors_ref start{};       ///< `flat_weights` [P] that jobs begin with where none are named; may be null.
  nb::handle start_object{}; ///< As what Python was shown them; null: it was not.
  sample_view samples{};     ///< Rows that jobs read where none are named.
  std::shared_ptr<const row_owner> owner{}; ///< Whose jobs they are.
  rng_key stream{};                         ///< Trainings shuffle below it.
};

/// Options of ctx.train(), ctx.extract(), ... by name.
using job_options = nb::kwargs;
/// Throws std::invalid_argument for an option that there is not, or one with a wrong value.
[[nodiscard]] job_request train_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request extract_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request statistics_request(const job_world& world, const job_options& options);
[[nodiscard]] job_request evaluate_request(const job_world& world, const job_options& options);

/// True if both ask for the same: what a pure round asks for twice.
[[nodiscard]] bool same_work(const work& a, const work& b);

/// Binds the classes of this header, and losses.
void bind_jobs(nb::module_& module);

} // namespace mneme
