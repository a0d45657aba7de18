/// job_requests: jobs as described in Python, and their results as returned to Python.
#pragma once
#include "runtime/method/client_context.hpp"
#include "runtime/method/strategy.hpp"
#include "tools/python/engine/objective_terms.hpp"
#include "tools/python/engine/row_sets.hpp"
namespace mneme {

// Axes: P weights of the net, n rows of a job.

/// A job that was described in Python and has not been yielded yet.
struct job_request {
  work request{};
  bool is_yielded = false; ///< true: its content has been moved.
};

/// Training objective as a Python object.
struct loss_object {
  objective_terms terms{};
  loss_ref objective{}; ///< Engine loss that computes the terms.
};

/// Result of a job. Tensors are converted to torch on first access.
struct job_result {
  work_output output{};
  nb::object weights{}; ///< Python object of the weights; null until first accessed.
};

/// Defaults for every job of a round or step.
struct job_defaults {
  const method_setup* setup = nullptr;
  round_info info{};
  tensors_ref start{};                      ///< Default initial weights [P]; may be null.
  nb::handle start_object{};                ///< Python object of `start`; null if Python has none.
  sample_view samples{};                    ///< Default rows of jobs.
  std::shared_ptr<const row_owner> owner{}; ///< Owner of the jobs.
  rng_key stream{};                         ///< Parent of the random streams that shuffle training rows.
};

/// Options of ctx.train(), ctx.extract() and the other functions, by name.
using job_options = nb::kwargs;
/// These functions describe jobs. They throw std::invalid_argument for an unknown option or an invalid value.
[[nodiscard]] job_request train_request(const job_defaults& world, const job_options& options);
[[nodiscard]] job_request extract_request(const job_defaults& world, const job_options& options);
[[nodiscard]] job_request statistics_request(const job_defaults& world, const job_options& options);
[[nodiscard]] job_request evaluate_request(const job_defaults& world, const job_options& options);

/// Throws nb::type_error if a function of a context was given arguments without names.
void expect_named(const char* job, const nb::args& unnamed);

// Docstrings of ctx.train() and the other functions.
extern const char *const train_doc, *const extract_doc, *const statistics_doc, *const evaluate_doc;

/// Binds train(), extract(), statistics() and evaluate() of a client's or a server's context.
template <class Context>
void bind_job_functions(nb::class_<Context>& to) {
  const auto bind = [&](const char* name, auto describe, const char* doc) {
    to.def(
        name,
        [name, describe](Context& context, const nb::args& unnamed, const nb::kwargs& given) {
          expect_named(name, unnamed);
          return describe(context.world(), given);
        },
        doc);
  };
  bind("train", &train_request, train_doc);
  bind("extract", &extract_request, extract_doc);
  bind("statistics", &statistics_request, statistics_doc);
  bind("evaluate", &evaluate_request, evaluate_doc);
}

/// True if both jobs are the same. The two runs of a checked round must satisfy this.
[[nodiscard]] bool same_work(const work& a, const work& b);

/// Binds the classes of this header and the losses.
void bind_jobs(nb::module_& module);

} // namespace mneme
