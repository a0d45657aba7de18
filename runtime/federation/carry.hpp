/// carry: serializes the messages of a wave for the network, as values in an archive without handles or addresses.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/federation/wave.hpp"
namespace mneme {

// Each function saves or loads. Tensors that both ends may have are sent by digest (`shared`); uploads are sent in
// full. Loading throws archive_error.

/// Omits the rows: the shard has them.
void carry(archive& state, start_rounds& wave, tensor_exchange& shared);
void carry(archive& state, release& command);
void carry(archive& state, abandon& rounds);
/// Omits durations: the scheduler alone computes times that decide events.
void carry(archive& state, wave_report& report, tensor_exchange& shared);

} // namespace mneme
