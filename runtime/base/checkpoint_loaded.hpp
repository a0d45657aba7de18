/// checkpoint_loaded: records that this process has loaded a checkpoint.
#pragma once
namespace mneme {

/// Call after loading a checkpoint. A later failed MNEME_CHECK may then be caused by a checkpoint that was forged with
/// a valid checksum. The process prints this and exits with code 1 instead of aborting.
void mark_checkpoint_loaded();

} // namespace mneme
