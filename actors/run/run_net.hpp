/// run_net: builds the net of a run.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/task_stream.hpp"
#include "runtime/models/model.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Classes of each task, in order.
[[nodiscard]] std::vector<class_range> classes_of_tasks(const task_stream& tasks);

/// Builds the run's net and freezes the parameters that model.frozen names. Fails with the location of the key that is
/// wrong.
/// @param device name of the device that computes the run
[[nodiscard]] expected<model_ref> make_run_model(const scenario& settings, const task_stream& tasks,
                                                 const std::string& device);

/// Warns about layers of model.module that are not trained.
[[nodiscard]] diagnostics module_warnings(const scenario& settings, const model& net);

} // namespace mneme
