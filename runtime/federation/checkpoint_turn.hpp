/// checkpoint_turn: decides when a checkpoint is taken, and what the run does after it.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/federation/federation_settings.hpp"
#include <utility>
namespace mneme {

/// Next step of a run that has nothing in progress. A checkpoint may be taken before each of these.
enum class next_step : std::uint8_t { task, round, event };

class checkpoint_turn {
public:
  explicit checkpoint_turn(const checkpoint_section& section) : every_(section.every), force_(section.force) {}

  /// Sets whether checkpoints that are due but not forced may be taken. Holds until the next checkpoint.
  void allow(bool allowed) noexcept { allowed_ = allowed; }
  /// Called after a server step. @param rounds closed so far. Returns whether to take a checkpoint now.
  [[nodiscard]] bool is_due_after(std::int64_t rounds) noexcept {
    due_ = due_ || (every_ > 0 && rounds % every_ == 0);
    const bool is_taken = due_ && (force_ || (allowed_ && writing_ == 0));
    due_ = due_ && !is_taken;
    return is_taken;
  }
  /// Starts the end of the run. Returns false if it had started already.
  [[nodiscard]] bool begin_to_end() noexcept { return !std::exchange(ending_, true); }
  [[nodiscard]] bool is_ending() const noexcept { return ending_; }
  /// True if this run writes checkpoints; then it writes one when it ends, too.
  [[nodiscard]] bool are_taken() const noexcept { return every_ > 0; }

  /// A checkpoint was taken. The run waits for the disk if checkpoints are forced or the run is ending.
  void began() noexcept {
    allowed_ = false;
    waits_ = force_ || ending_;
    ++writing_;
  }
  /// Called when writing starts. Returns whether the run continues while the checkpoint is written.
  [[nodiscard]] bool goes_on_meanwhile() const noexcept { return !waits_; }
  /// Called when a checkpoint is on disk or has failed. Returns whether the run was waiting for it and resumes now.
  [[nodiscard]] bool kept() {
    MNEME_CHECK(writing_ > 0);
    return --writing_ == 0 && std::exchange(waits_, false);
  }

  next_step next = next_step::task; ///< Step after the checkpoint.

private:
  std::int64_t every_;
  bool force_, allowed_ = true;
  bool due_ = false;
  bool waits_ = false;      // the run resumes when the checkpoint is on disk
  std::size_t writing_ = 0; // checkpoints being written
  bool ending_ = false;     // the last checkpoint of an interrupted run is being taken
};

} // namespace mneme
