/// unit_text: numbers, strings, durations and sizes in the notation of scenarios: "30 s", "4 MiB", 0.05.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// Parses a duration, a number with one of the units ns, us, ms, s, min, h: "1.5 s", "250ms". Returns nullopt for other
/// texts, and for durations that are negative, in (0, 1 ns), or above duration_max (number_limits.hpp).
[[nodiscard]] std::optional<virtual_duration> parse_duration(std::string_view text);
/// Formats a duration in the largest unit that needs no fraction: "90 s", "2 h", "0 s". The inverse of
/// parse_duration().
[[nodiscard]] std::string duration_text(virtual_duration duration);

/// Parses a size, a number with the unit B, kB to TB (decimal) or KiB to TiB (binary): "512 B", "1 GB", "4 MiB".
/// Returns nullopt for other texts, and for sizes above size_max.
[[nodiscard]] std::optional<byte_size> parse_size(std::string_view text);
/// Formats a size in the largest unit that needs no fraction. The inverse of parse_size().
[[nodiscard]] std::string size_text(byte_size size);

/// The shortest decimal text that parses to the same double, with the decimal point or exponent that TOML requires.
[[nodiscard]] std::string number_text(double value);
/// Formats a TOML basic string, quoted and escaped.
[[nodiscard]] std::string quote_text(std::string_view text);
/// Returns "[text]".
[[nodiscard]] std::string bracket_text(std::string text);
/// Joins the texts of the elements: "a, b, c". `item` converts one element to text.
template <class Range, class Text>
[[nodiscard]] std::string joined(const Range& items, Text item, std::string_view between = ", ") {
  std::string text;
  for (const auto& element : items)
    text.append(text.empty() ? std::string_view{} : between).append(item(element));
  return text;
}
/// Joins the words in quotes, with `between` as separator: "a", "b", "c".
[[nodiscard]] std::string word_list(const std::vector<std::string>& words, std::string_view between = ", ");

} // namespace mneme
