/// checkpoint_turn: when checkpoints are taken, and what the run does next.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/federation/federation_settings.hpp"
#include <utility>
namespace mneme {

/// What is done next where nothing is under way: the places at which a checkpoint may be taken.
enum class next_step : std::uint8_t { task, round, event };

class checkpoint_turn {
public:
  explicit checkpoint_turn(const checkpoint_section& section) : every_(section.every), force_(section.force) {}

  /// Checkpoints that are due, and not forced, may be taken now, until one is.
  void allow(bool allowed) noexcept { allowed_ = allowed; }
  /// A server step is over. @param rounds closed so far. Returns whether a checkpoint is taken now.
  [[nodiscard]] bool is_due_after(std::int64_t rounds) noexcept {
    due_ = due_ || (every_ > 0 && rounds % every_ == 0);
    const bool is_taken = due_ && (force_ || (allowed_ && writing_ == 0));
    due_ = due_ && !is_taken;
    return is_taken;
  }
  /// The run ends here. Returns whether it was not ending already.
  [[nodiscard]] bool begin_to_end() noexcept { return !std::exchange(ending_, true); }
  [[nodiscard]] bool is_ending() const noexcept { return ending_; }
  /// A run that ends leaves a checkpoint behind, where there are any.
  [[nodiscard]] bool are_taken() const noexcept { return every_ > 0; }

  /// One is taken. The run goes on once it is on the disk, where checkpoints are forced and where it ends.
  void began() noexcept {
    allowed_ = false;
    waits_ = force_ || ending_;
    ++writing_;
  }
  /// It goes to the disk. Returns whether the run goes on meanwhile.
  [[nodiscard]] bool goes_on_meanwhile() const noexcept { return !waits_; }
  /// It is on the disk, or could not be written. Returns whether the run, which has waited for it, goes on.
  [[nodiscard]] bool kept() {
    MNEME_CHECK(writing_ > 0);
    return --writing_ == 0 && std::exchange(waits_, false);
  }

  next_step next = next_step::task; ///< What follows.

private:
  std::int64_t every_;
  bool force_, allowed_ = true;
  bool due_ = false;
  bool waits_ = false;      // the run goes on when the checkpoint is on the disk
  std::size_t writing_ = 0; // checkpoints
  bool ending_ = false;     // the last checkpoint of an interrupted run is being taken
};

} // namespace mneme
