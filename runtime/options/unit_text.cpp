#include "runtime/options/unit_text.hpp"
#include "runtime/options/number_limits.hpp"
#include <array>
#include <charconv>
#include <cmath>
namespace mneme {
namespace {

struct unit {
  std::string_view name;
  std::int64_t scale; // number of ns, or of bytes
};
// The largest unit comes first, because a value is formatted in the first unit that divides it without remainder.
constexpr std::array durations{unit{"h", 3'600'000'000'000}, unit{"min", 60'000'000'000}, unit{"s", 1'000'000'000},
                               unit{"ms", 1'000'000},        unit{"us", 1'000},           unit{"ns", 1}};
constexpr std::array sizes{unit{"TiB", std::int64_t{1} << 40},
                           unit{"TB", 1'000'000'000'000},
                           unit{"GiB", 1 << 30},
                           unit{"GB", 1'000'000'000},
                           unit{"MiB", 1 << 20},
                           unit{"MB", 1'000'000},
                           unit{"KiB", 1 << 10},
                           unit{"kB", 1'000},
                           unit{"B", 1}};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

/// Returns `number` times `scale`. The result is exact for whole numbers. Returns nullopt if the result is not a number
/// in [0, limit].
std::optional<std::int64_t> scaled(std::string_view number, std::int64_t scale, std::int64_t limit) {
  const auto* end = number.data() + number.size();
  std::int64_t whole = 0, product = 0;
  if (auto [end_of_number, error] = std::from_chars(number.data(), end, whole); end_of_number == end) {
    const bool fits = error == std::errc{} && whole >= 0 && !__builtin_mul_overflow(whole, scale, &product);
    return fits && product <= limit ? std::optional(product) : std::nullopt;
  }
  double value = 0.0;
  const auto [end_of_number, error] = std::from_chars(number.data(), end, value, std::chars_format::fixed);
  const double exact = value * static_cast<double>(scale);
  if (error != std::errc{} || end_of_number != end || !(exact >= 0.0 && exact <= static_cast<double>(limit)))
    return std::nullopt;
  const auto nearest_whole = std::llround(exact);
  return nearest_whole == 0 && exact > 0.0 ? std::nullopt : std::optional<std::int64_t>(nearest_whole);
}

template <std::size_t N>
std::optional<std::int64_t> parse(std::string_view text, const std::array<unit, N>& units, std::int64_t limit) {
  text = without_spaces(text);
  const auto digits = text.find_first_not_of("0123456789.");
  if (digits == 0 || digits == std::string_view::npos)
    return std::nullopt;
  const auto name = without_spaces(text.substr(digits));
  for (const auto& item : units)
    if (item.name == name)
      return scaled(text.substr(0, digits), item.scale, limit);
  return std::nullopt;
}

template <std::size_t N>
std::string written(std::int64_t value, const std::array<unit, N>& units) {
  for (const auto& item : units)
    if (value % item.scale == 0)
      return std::to_string(value / item.scale) + " " + std::string(item.name);
  return {};
}

} // namespace

std::optional<virtual_duration> parse_duration(std::string_view text) {
  const auto duration = parse(text, durations, duration_max.count());
  return duration ? std::optional(virtual_duration(*duration)) : std::nullopt;
}

std::string duration_text(virtual_duration duration) {
  return duration.count() == 0 ? "0 s" : written(duration.count(), durations);
}

std::optional<byte_size> parse_size(std::string_view text) {
  const auto size = parse(text, sizes, size_max.bytes);
  return size ? std::optional(byte_size{*size}) : std::nullopt;
}

std::string size_text(byte_size size) { return size.bytes == 0 ? "0 B" : written(size.bytes, sizes); }

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string quote_text(std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n' || c == '\t' || c == '\r')
      (out += '\\') += c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
    else if (code < 0x20 || code == 0x7f)
      ((out += "\\u00") += hex[code >> 4]) += hex[code & 15];
    else
      out += c;
  }
  return out + '"';
}

std::string bracket_text(std::string text) {
  text.insert(text.begin(), '[');
  text.push_back(']');
  return text;
}

std::string word_list(const std::vector<std::string>& words, std::string_view between) {
  return joined(
      words, [](const std::string& word) { return quote_text(word); }, between);
}

} // namespace mneme
