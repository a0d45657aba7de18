/// unquoted_strings: after toml++ has failed, finds values that are not TOML, such as fedavg in `name = fedavg`.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// A value that is not TOML but would be valid as a quoted string or with other digits.
struct unquoted_string {
  std::size_t begin = 0, end = 0;    ///< Byte range [begin, end) in the text.
  std::int64_t line = 0, column = 0; ///< Location of the first character, from 1.
  std::string written{};             ///< The value as written, such as fedavg.
  std::string value{};               ///< The valid TOML: "\"fedavg\"" for fedavg, "true" for True, "0.5" for .5.
  bool is_number = false;            ///< True if `value` is a number.
  std::string corrected_line{};      ///< The line with `value` instead of the word, trimmed and without comment.
};

/// Returns the first bare value of line `line` (from 1), or nullopt if the line has another error. A bare value is a
/// word that begins with a letter, `_`, `.`, `/` or `~` and is not a boolean, `inf` or `nan`. A bare value may also be
/// a number with a unit, such as 30 s, or a number in another notation; see number_of().
[[nodiscard]] std::optional<unquoted_string> find_unquoted_string(const std::string& text, std::int64_t line);

/// Converts a number to TOML: "0.5" for ".5", "5.0" for "5.", "10" for "010", "0.5" for "0,5". Returns "" if `word` is
/// not a number, or already valid TOML.
[[nodiscard]] std::string number_of(std::string_view word);

/// Converts the numbers in a list or inline table with number_of(): "[0.5, 1]" for "[.5, 1]". Returns "" if nothing is
/// converted, or if the result is still not TOML.
[[nodiscard]] std::string with_numbers_of_toml(std::string_view value);

} // namespace mneme
