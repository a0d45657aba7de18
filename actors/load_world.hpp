/// load_world: from a scenario to everything its run reads; all bad input is found here.
#pragma once
#include "actors/world.hpp"
#include "runtime/finding.hpp"
namespace mneme {

/// Loads the data, splits them into tasks and over clients, builds and initialises the model, and
/// prepares the method. @param split receives the partition, for partition.csv; may be null
[[nodiscard]] expected<std::shared_ptr<world>> load_world(const scenario& what,
                                                          std::shared_ptr<const partition>* split = nullptr);

} // namespace mneme
