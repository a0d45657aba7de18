/// method_inputs: inputs of a run's method.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/task_stream.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Loads all inputs of a method except the initial weights. Reads the files that its keys name and lets the method
/// validate the result. Fails with all errors.
/// @param device name of the device that computes the run
[[nodiscard]] expected<method_setup> load_method_inputs(const scenario& settings, const task_stream& tasks,
                                                        const model_ref& net, const std::string& device);

} // namespace mneme
