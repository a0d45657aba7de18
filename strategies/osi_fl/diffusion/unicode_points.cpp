#include "strategies/osi_fl/diffusion/unicode_points.hpp"
#include <unicode/uchar.h>
#include <unicode/utf8.h>
namespace mneme {
namespace {

bool has_category(char32_t point, std::uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(point)) & mask) != 0;
}

} // namespace

bool is_letter_point(char32_t point) { return has_category(point, U_GC_L_MASK); }
bool is_number_point(char32_t point) { return has_category(point, U_GC_N_MASK); }
bool is_space_point(char32_t point) { return u_isUWhiteSpace(static_cast<UChar32>(point)) != 0; }

std::u32string to_lower(std::u32string_view text) {
  std::u32string small;
  for (const auto point : text)
    if (point == 0x130) // the only letter whose lowercase has two points: i, dot above
      small += U"i\x307";
    else
      small += static_cast<char32_t>(u_tolower(static_cast<UChar32>(point)));
  return small;
}

std::u32string points_of(std::string_view bytes) {
  std::u32string points;
  const auto size = static_cast<std::int64_t>(bytes.size());
  for (std::int64_t at = 0; at < size;) {
    UChar32 point = 0;
    U8_NEXT_OR_FFFD(bytes.data(), at, size, point);
    points += static_cast<char32_t>(point);
  }
  return points;
}

void add_point(std::string& text, char32_t point) {
  char bytes[U8_MAX_LENGTH];
  std::size_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, point);
  text.append(bytes, length);
}

std::string bytes_of(std::u32string_view points) {
  std::string bytes;
  for (const auto point : points)
    add_point(bytes, point);
  return bytes;
}

} // namespace mneme
