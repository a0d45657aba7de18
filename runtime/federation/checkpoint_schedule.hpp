/// checkpoint_schedule: decides when to take a checkpoint, and whether the run waits for it.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/federation/federation_settings.hpp"
#include <utility>
namespace mneme {

/// The next step of a run that has no step in progress. A checkpoint may be taken before each of these steps.
enum class next_step : std::uint8_t { task, round, event };

class checkpoint_schedule {
public:
  explicit checkpoint_schedule(const checkpoint_section& section) : every_(section.every), force_(section.force) {}

  /// Allows or forbids checkpoints that are due but not forced. The setting holds until the next checkpoint.
  void allow(bool allowed) noexcept { allowed_ = allowed; }
  /// Call after each server step. Returns whether to take a checkpoint now. @param rounds number of closed rounds
  [[nodiscard]] bool is_due_after(std::int64_t rounds) noexcept {
    due_ = due_ || (every_ > 0 && rounds % every_ == 0);
    const bool is_taken = due_ && (force_ || (allowed_ && writing_ == 0));
    due_ = due_ && !is_taken;
    return is_taken;
  }
  /// Marks the run as ending. Returns false if it was already ending.
  [[nodiscard]] bool begin_shutdown() noexcept { return !std::exchange(ending_, true); }
  [[nodiscard]] bool is_ending() const noexcept { return ending_; }
  /// True if this run writes checkpoints; it then writes one at its end, too.
  [[nodiscard]] bool are_taken() const noexcept { return every_ > 0; }

  /// Records that a checkpoint was taken. The run waits for the disk if checkpoints are forced or the run is ending.
  void began() noexcept {
    allowed_ = false;
    waits_ = force_ || ending_;
    ++writing_;
  }
  /// Returns whether the run continues while the checkpoint is being written.
  [[nodiscard]] bool continues_while_writing() const noexcept { return !waits_; }
  /// Call when a checkpoint is on disk or has failed. Returns whether the run was waiting for it and can resume.
  [[nodiscard]] bool on_checkpoint_written() {
    MNEME_CHECK(writing_ > 0);
    return --writing_ == 0 && std::exchange(waits_, false);
  }

  next_step next = next_step::task; ///< The run's next step after the checkpoint.

private:
  std::int64_t every_;
  bool force_, allowed_ = true;
  bool due_ = false;
  bool waits_ = false;      // the run resumes when the checkpoint is on disk
  std::size_t writing_ = 0; // number of checkpoints being written
  bool ending_ = false;     // the last checkpoint before the run ends is being taken
};

} // namespace mneme
