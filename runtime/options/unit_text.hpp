/// unit_text: numbers, strings, durations and sizes in the notation of a scenario: "30 s", "4 MiB", 0.05.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// Parses a number and one of ns, us, ms, s, min, h: "1.5 s", "250ms". Returns nullopt if the text is not a duration,
/// or if the duration is negative, in (0, 1 ns), or longer than duration_max (number_limits.hpp).
[[nodiscard]] std::optional<virtual_duration> parse_duration(std::string_view text);
/// In the largest unit that needs no fraction: "90 s", "2 h", "0 s". parse_duration() restores the value.
[[nodiscard]] std::string duration_text(virtual_duration duration);

/// Parses a number and B, a decimal unit (kB to TB) or a binary unit (KiB to TiB): "512 B", "1 GB", "4 MiB". Returns
/// nullopt if the text is not a size, or above size_max.
[[nodiscard]] std::optional<byte_size> parse_size(std::string_view text);
[[nodiscard]] std::string size_text(byte_size size);

/// The shortest decimal that restores the same double, with the decimal point or exponent that TOML requires.
[[nodiscard]] std::string number_text(double value);
/// A TOML basic string, quoted and escaped.
[[nodiscard]] std::string in_quotes(std::string_view text);
/// "[text]"
[[nodiscard]] std::string in_brackets(std::string text);
/// "a, b, c" with `one` applied to each element.
template <class Range, class Text>
[[nodiscard]] std::string joined(const Range& items, Text item, std::string_view between = ", ") {
  std::string text;
  for (const auto& element : items)
    text.append(text.empty() ? std::string_view{} : between).append(item(element));
  return text;
}
/// The words in quotes, with `between` between them: "a", "b", "c".
[[nodiscard]] std::string word_list(const std::vector<std::string>& words, std::string_view between = ", ");

} // namespace mneme
