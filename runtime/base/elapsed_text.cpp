#include "runtime/base/elapsed_text.hpp"
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
namespace mneme {

std::string elapsed_text(double seconds) {
  if (seconds < 59.95)
    return fmt::format("{:.1f} s", seconds);
  constexpr std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  const std::int64_t whole = std::llround(seconds);
  if (whole < hour)
    return fmt::format("{} min {:02} s", whole / minute, whole % minute);
  if (whole < day)
    return fmt::format("{} h {:02} min", whole / hour, whole % hour / minute);
  return fmt::format("{} d {:02} h", whole / day, whole % day / hour);
}

} // namespace mneme
