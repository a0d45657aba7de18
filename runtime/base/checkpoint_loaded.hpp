/// checkpoint_loaded: records that this process has loaded a checkpoint.
#pragma once
namespace mneme {

/// Call after loading a checkpoint. If a MNEME_CHECK fails later, the cause may be a checkpoint that was forged with a
/// valid checksum. The process reports this and exits with code 1 instead of aborting.
void mark_checkpoint_loaded();

} // namespace mneme
