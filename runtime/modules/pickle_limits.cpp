#include "runtime/modules/pickle_limits.hpp"
#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Goes through a pickle, instruction by instruction.
class pickle_scan {
public:
  explicit pickle_scan(std::string_view pickle) : pickle_(pickle) {}

  std::string excess() {
    while (at_ < pickle_.size() && !is_over_ && excess_.empty())
      step(static_cast<std::uint8_t>(pickle_[at_++]));
    return excess_;
  }

private:
  /// The next unsigned number, the lowest byte first; what is cut off counts as zeros.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes && at_ + i < pickle_.size(); ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(pickle_[at_ + i])} << (8 * i);
    at_ += bytes;
    return value;
  }

  /// A text behind a length of so many bytes.
  void text(std::size_t length_bytes) {
    const auto place = at_;
    const auto length = number(length_bytes);
    const auto left = pickle_.size() - std::min(at_, pickle_.size());
    if (length > left)
      excess_ = fmt::format("byte {} of a pickle says that a text of {} bytes follows, and {} do; the file is damaged",
                            place, length, left);
    at_ += static_cast<std::size_t>(std::min<std::uint64_t>(length, left));
  }

  /// Where a value is kept.
  void place_of_value(std::size_t bytes) {
    const auto place = at_;
    if (const auto value = number(bytes); value > pickle_.size())
      excess_ =
          fmt::format("byte {} of a pickle keeps a value at place {}, and there are no more values than bytes, {};"
                      " the file is damaged",
                      place, value, pickle_.size());
  }

  /// LibTorch looks for the end of a line for as long as there is memory.
  void lines(int count) {
    for (; count > 0 && excess_.empty(); --count)
      if (const auto end = pickle_.find('\n', at_); end != std::string_view::npos)
        at_ = end + 1;
      else
        excess_ = fmt::format("byte {} of a pickle begins a name that does not end; the file is damaged", at_);
  }

  void step(std::uint8_t instruction) {
    constexpr std::string_view without_argument = "(01)]}aestuRbQN2.\x81\x85\x86\x87\x88\x89";
    switch (instruction) {
    case 0x80: // protocol
    case 'K':
    case 'h':
      return void(at_ += 1);
    case 'q':
      return place_of_value(1);
    case 'M':
      return void(at_ += 2);
    case 'J':
    case 'j':
      return void(at_ += 4);
    case 'r':
      return place_of_value(4);
    case 'G':
      return void(at_ += 8);
    case 0x8a: // a whole number of any length
    case 'U':
      return text(1);
    case 'T':
    case 'X':
      return text(4);
    case 'c':
      return lines(2);
    default:
      is_over_ = instruction == '.' || without_argument.find(static_cast<char>(instruction)) == std::string_view::npos;
    }
  }

  std::string_view pickle_;
  std::size_t at_ = 0;
  bool is_over_ = false;
  std::string excess_;
};

} // namespace

std::string pickle_excess(std::string_view pickle) { return pickle_scan(pickle).excess(); }

} // namespace mneme
