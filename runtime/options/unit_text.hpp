/// Numbers, strings, durations and sizes as a scenario spells them: "30 s", "4 MiB", 0.05.
#pragma once
#include "runtime/options/keys.hpp"
#include <optional>
namespace mneme {

/// "1.5 s", "250ms": a number and one of ns, us, ms, s, min, h. Returns nullopt if the text is no duration, or one that
/// is negative, in (0, 1 ns), or longer than duration_max (number_limits.hpp).
[[nodiscard]] std::optional<virtual_duration> parse_duration(std::string_view text);
/// In the largest unit that needs no fraction: "90 s", "2 h", "0 s". parse_duration() reads it back.
[[nodiscard]] std::string duration_text(virtual_duration duration);

/// "512 B", "1 GB", "4 MiB": a number and B, or k, M, G, T times 1000 or (KiB, ...) 1024; at most size_max.
[[nodiscard]] std::optional<byte_size> parse_size(std::string_view text);
[[nodiscard]] std::string size_text(byte_size size);

/// The shortest decimal that reads back to the same double, with a point or an exponent as TOML wants.
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
/// The words in quotes: "a", "b", "c".
[[nodiscard]] std::string word_list(const std::vector<std::string>& words, std::string_view between = ", ");

} // namespace mneme
