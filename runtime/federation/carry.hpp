/// carry: what crosses the network of a wave, as values in an archive: no handle, no address.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/federation/wave.hpp"
namespace mneme {

// Each function saves or loads. Tensors that both ends have, or that may come again, are named (`shared`); uploads come
// once and do not. Loading throws archive_error.

/// Without rows: the shard views its own.
void carry(archive& state, start_rounds& wave, tensor_exchange& shared);
void carry(archive& state, release& command);
void carry(archive& state, abandon& rounds);
/// Without durations: times that decide events are computed in one place, where virtual time is.
void carry(archive& state, wave_report& report, tensor_exchange& shared);

} // namespace mneme
