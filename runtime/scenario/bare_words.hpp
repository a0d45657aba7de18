/// bare_words: finds values that are not TOML, as in `name = fedavg` or `rate = .5`, at the place where toml++ failed.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// A value that is not TOML, but would be a legal string in quotes or a legal number with other digits.
struct bare_word {
  std::size_t begin = 0, end = 0;    ///< Byte range in the text, [begin, end).
  std::int64_t line = 0, column = 0; ///< Position of its first character, from 1.
  std::string written{};             ///< As it stands there: "fedavg"
  std::string value{};               ///< What it should be: "\"fedavg\"", "true" for True, "0.5" for .5.
  bool is_number = false;            ///< True if `value` is a number.
  std::string corrected_line{};      ///< The line with `value` in place of the word, trimmed and without its comment.
};

/// Returns the first bare value of line `line` (from 1), or nullopt if the line has another error. A bare value is one
/// of: a word that begins with a letter, `_`, `.`, `/` or `~` and is not a boolean, `inf` or `nan`; a number with a
/// unit, as in 30 s; a number in the notation of other languages (number_of()).
[[nodiscard]] std::optional<bare_word> bare_word_in(const std::string& text, std::int64_t line);

/// Converts a number to TOML: "0.5" for ".5", "5.0" for "5.", "10" for "010", "0.5" for "0,5". Returns "" if `word` is
/// not a number, or is legal TOML already.
[[nodiscard]] std::string number_of(std::string_view word);

/// Converts the numbers in a list or inline table by number_of(): "[0.5, 1]" for "[.5, 1]". Returns "" if nothing needs
/// to be replaced, or if the result would still not be TOML.
[[nodiscard]] std::string with_numbers_of_toml(std::string_view value);

} // namespace mneme
