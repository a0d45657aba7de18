/// load_run_context: from a scenario to everything its run reads; all bad input is found here.
#pragma once
#include "actors/protocol/run_context.hpp"
#include "runtime/base/diagnostic.hpp"
namespace mneme {

/// What becomes of a world.
enum class run_context_use {
  run,
  check, ///< Nothing is run: weights from files are read, but none are drawn, which takes a large net seconds.
};

/// Loads the data, splits them into tasks and over clients, builds and initialises the model, and
/// prepares the method. @param split receives the partition, for partition.csv; may be null
[[nodiscard]] expected<std::shared_ptr<run_context>> load_run_context(const scenario& settings,
                                                                      std::shared_ptr<const partition>* split = nullptr,
                                                                      run_context_use use = run_context_use::run);

} // namespace mneme
