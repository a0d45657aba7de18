/// world_facts: what the processes of a run must have alike, each as a digest.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Device, data set, class order, partition and times of a world that is loaded. Of large populations the first
/// thousand clients stand for all: everything follows from the same keys.
[[nodiscard]] named_facts world_facts(const run_context& run);

} // namespace mneme
