/// resumed_state: records that this process has loaded a checkpoint.
#pragma once
namespace mneme {

/// From now on a failed MNEME_CHECK may be caused by a checkpoint that was forged with a valid checksum. The process
/// then ends with exit code 1 and says so, instead of aborting.
void note_resumed_state();

} // namespace mneme
