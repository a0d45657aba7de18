/// bare_words: strings whose quotes were forgotten, as in `name = fedavg`, found where toml++ could not go on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
namespace mneme {

/// A value that is no TOML and would be a string within quotes.
struct bare_word {
  std::size_t begin = 0, end = 0;    ///< Its bytes within the text, [begin, end).
  std::int64_t line = 0, column = 0; ///< Where its first character stands, from 1.
  std::string written{};             ///< As it stands there: "fedavg"
  std::string value{};               ///< What it should be: "\"fedavg\"", or "true" for True.
  std::string corrected_line{};      ///< The line with that value in its place, without blanks around and comment.
};

/// The first value of line `line` (from 1) that begins with a letter, `_`, `.`, `/` or `~` and is neither a boolean nor
/// `inf` or `nan`, or that is a number with a unit, as in 30 s. None: the line is wrong in another way.
[[nodiscard]] std::optional<bare_word> bare_word_in(const std::string& text, std::int64_t line);

} // namespace mneme
