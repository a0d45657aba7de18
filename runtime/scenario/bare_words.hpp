/// bare_words: values that are no TOML, as in `name = fedavg` or `rate = .5`, found where toml++ failed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// A value that is no TOML but would be a string within quotes, or a number with other digits.
struct bare_word {
  std::size_t begin = 0, end = 0;    ///< Its bytes within the text, [begin, end).
  std::int64_t line = 0, column = 0; ///< Where its first character stands, from 1.
  std::string written{};             ///< As it stands there: "fedavg"
  std::string value{};               ///< What it should be: "\"fedavg\"", "true" for True, "0.5" for .5.
  bool is_number = false;            ///< `value` is a number.
  std::string corrected_line{};      ///< The line with that value in its place, without blanks around and comment.
};

/// The first value of line `line` (from 1) that begins with a letter, `_`, `.`, `/` or `~` and is neither a boolean nor
/// `inf` or `nan`, that is a number with a unit, as in 30 s, or a number as other languages write it (number_of()).
/// Returns nullopt if the line is wrong in another way.
[[nodiscard]] std::optional<bare_word> bare_word_in(const std::string& text, std::int64_t line);

/// The number in TOML that `word` stands for: "0.5" for ".5", "5.0" for "5.", "10" for "010", "0.5" for "0,5".
/// Returns "" if `word` is no number, or one that TOML has as it is written.
[[nodiscard]] std::string number_of(std::string_view word);

/// A list or table in TOML with its numbers replaced by number_of(): "[0.5, 1]" for "[.5, 1]". Returns "" if nothing
/// needs to be replaced, or something else is no TOML.
[[nodiscard]] std::string with_numbers_of_toml(std::string_view value);

} // namespace mneme
