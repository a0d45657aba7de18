/// csv_fields: the pieces of a CSV file that readers of such files share. Text is cut, never copied.
#pragma once
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>
namespace mneme::csv {

/// A file that is wrong on every line is reported with at most so many diagnostics.
inline constexpr std::size_t diagnostics_max = 20;

/// `text` behind the byte order mark that some programs write.
[[nodiscard]] std::string_view without_mark(std::string_view text);
/// Cuts the next line off `text`, without the blanks around it.
[[nodiscard]] std::string_view next_line(std::string_view& text);
/// Cuts the next field off `text`, without blanks and quotes around it. Quotes keep a comma inside a field.
[[nodiscard]] std::string_view next_field(std::string_view& text);
/// All fields of a line: one more than it has commas.
[[nodiscard]] std::vector<std::string_view> fields_of(std::string_view line);

/// `text` as a field of a line that is written: in quotes where it holds a comma, a quote or a line break.
[[nodiscard]] std::string field_text(std::string_view text);

/// True if the whole field is a number of this kind, which is then written to `into`.
template <class Number>
[[nodiscard]] bool is_number(std::string_view field, Number& into) {
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), into);
  return error == std::errc{} && end == field.data() + field.size();
}

} // namespace mneme::csv
