/// run_fingerprint: fingerprint of a loaded run, which must be equal in all of its processes.
#pragma once
#include "actors/nodes/node_messages.hpp"
#include "actors/protocol/run_context.hpp"
namespace mneme {

/// Digests of device, data set, class order, partition and durations of a loaded run. Only the first thousand clients
/// of a population are included.
[[nodiscard]] fingerprint_fields run_fingerprint(const run_context& run);

} // namespace mneme
