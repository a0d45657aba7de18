/// terminal_block: lines at the end of a terminal that are redrawn in place, with messages printed above them.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
#include <cstdio>
#include <optional>
#include <string>
namespace mneme {

/// Before the first draw() it only prints messages.
class terminal_block {
public:
  explicit terminal_block(std::FILE* out) : out_(out) {}
  /// True if the block was drawn less than this number of seconds ago.
  [[nodiscard]] bool is_younger_than(double seconds) const { return drawn_ && drawn_->seconds() < seconds; }
  /// Replaces the drawn block. @param text lines that each end with a line break; cut to the terminal's width
  void draw(const std::string& text);
  void erase();
  /// Prints the text and a line break above the block.
  void say(const std::string& text);

private:
  std::FILE* out_;
  int lines_ = 0; // number of lines on the screen
  std::optional<recorder_stopwatch> drawn_{};
};

/// Formats a share (0 to 1) as "[#####...............]", with 20 characters between the brackets.
[[nodiscard]] std::string terminal_bar(double share);

} // namespace mneme
