#include "runtime/base/decimal_text.hpp"
#include <algorithm>
#include <charconv>
namespace mneme {
namespace {

constexpr std::int64_t exponent_max = 1'000'000'000'000'000; // adding a digit count cannot overflow

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Removes a leading "+" or "-". Returns true for "-".
bool cut_sign(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+'))
    text.remove_prefix(1);
  return negative;
}

/// Parses an exponent such as "e-12", clamped to exponent_max. Returns nullopt if the text is no exponent.
std::optional<std::int64_t> parse_exponent(std::string_view text) {
  if (text.empty())
    return 0;
  if (text.front() != 'e' && text.front() != 'E')
    return std::nullopt;
  text.remove_prefix(1);
  const bool negative = cut_sign(text);
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit))
    return std::nullopt;
  std::int64_t size = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), size).ec != std::errc{} || size > exponent_max)
    size = exponent_max;
  return negative ? -size : size;
}

} // namespace

std::strong_ordering operator<=>(const decimal& a, const decimal& b) {
  const auto sign = [](const decimal& value) { return value.digits.empty() ? 0 : value.negative ? -1 : 1; };
  if (sign(a) != sign(b) || sign(a) == 0)
    return sign(a) <=> sign(b);
  const auto by_size = a.exponent != b.exponent ? a.exponent <=> b.exponent : a.digits <=> b.digits;
  return a.negative ? 0 <=> by_size : by_size;
}

std::optional<decimal> parse_decimal(std::string_view text) {
  decimal value{.negative = cut_sign(text)};
  bool has_digits = false;
  const auto take_digits = [&](std::int64_t places_left_of_point) {
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
      has_digits = true;
      if (value.digits.empty() && text.front() == '0') {
        value.exponent += places_left_of_point - 1;
        continue;
      }
      value.digits += text.front();
      value.exponent += places_left_of_point;
    }
  };
  take_digits(1);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    take_digits(0);
  }
  const auto exponent = parse_exponent(text);
  if (!has_digits || !exponent)
    return std::nullopt;
  value.digits.erase(value.digits.find_last_not_of('0') + 1);
  if (value.digits.empty())
    return decimal{};
  value.exponent += *exponent;
  return value;
}

} // namespace mneme
