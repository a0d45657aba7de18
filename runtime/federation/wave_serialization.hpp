/// wave_serialization: serializes the messages of a wave for the network. Archives contain values only, neither
/// pointers nor handles.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/federation/wave.hpp"
namespace mneme {

// Each function saves or loads, depending on the archive. Tensors that both ends may hold are sent by digest
// (`shared`); uploads are sent in full. Loading throws archive_error on invalid data.

/// Omits the training rows, which the shard loads itself.
void serialize_wave(archive& state, start_rounds& wave, tensor_exchange& shared);
void serialize_wave(archive& state, release& command);
void serialize_wave(archive& state, abandon& rounds);
/// Omits durations, since only the scheduler computes the times of events.
void serialize_wave(archive& state, wave_report& report, tensor_exchange& shared);

} // namespace mneme
