#include "actors/run/terminal_block.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
namespace mneme {
namespace {

/// Width of the terminal in columns; 80 if `out` is not a terminal.
std::size_t columns_of(std::FILE* out) {
  winsize size{};
  const bool known = ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

} // namespace

void terminal_block::draw(const std::string& text) {
  erase();
  const auto columns = columns_of(out_);
  for (std::size_t begin = 0; begin < text.size(); ++lines_) {
    const auto end = text.find('\n', begin);
    // Lines are cut to the width: a wrapped line would take two rows, and the next draw would start at the wrong row.
    std::fprintf(out_, "%s\n", text.substr(begin, std::min(end - begin, columns - 1)).c_str());
    begin = end + 1;
  }
  std::fflush(out_);
  drawn_.emplace();
}

void terminal_block::erase() {
  if (lines_ > 0)
    std::fprintf(out_, "\r\x1b[%dA\x1b[J", lines_); // moves to the block's first line and erases the rest of the screen
  lines_ = 0;
}

void terminal_block::say(const std::string& text) {
  erase();
  const auto shown = printable(text);
  std::fwrite(shown.data(), 1, shown.size(), out_);
  std::fputc('\n', out_);
  std::fflush(out_);
}

std::string terminal_bar(double share) {
  const std::string full(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * 20.0), '#');
  return fmt::format("[{:.<20}]", full);
}

} // namespace mneme
