/// resumed_state: what this process computes with was read from a checkpoint.
#pragma once
namespace mneme {

/// From here on a broken promise between our own functions may be the fault of a file whose checksum was made to fit,
/// which no reader can tell from a true one: such a process ends with exit code 1 and says so, instead of aborting.
void note_resumed_state();

} // namespace mneme
