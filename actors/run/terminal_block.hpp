/// terminal_block: lines at the end of a terminal that are drawn anew in place, and text that goes above them.
#pragma once
#include "actors/protocol/recorder_clock.hpp"
#include <cstdio>
#include <optional>
#include <string>
namespace mneme {

/// Without a drawing it is a stream that lines are written to.
class terminal_block {
public:
  explicit terminal_block(std::FILE* out) : out_(out) {}
  /// True if it was drawn less than so many seconds ago.
  [[nodiscard]] bool is_younger_than(double seconds) const { return drawn_ && drawn_->seconds() < seconds; }
  /// Draws in place of what it shows. @param text lines that each end with a break; cut to the terminal's width
  void draw(const std::string& text);
  void erase();
  /// Writes the text and a line break, at once; the block makes room.
  void say(const std::string& text);

private:
  std::FILE* out_;
  int lines_ = 0; // on the screen now
  std::optional<recorder_stopwatch> drawn_{};
};

/// "[#####...............]", 20 characters between the brackets.
[[nodiscard]] std::string terminal_bar(double share);

} // namespace mneme
