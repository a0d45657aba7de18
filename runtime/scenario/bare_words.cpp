#include "runtime/scenario/bare_words.hpp"
#include "runtime/options/unit_text.hpp"
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
namespace mneme {
namespace {

using text_view = std::string_view;

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

text_view without_blanks(text_view text) {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

std::string in_lower_case(text_view word) {
  std::string lower(word);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

bool begins_as_word(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return std::isalpha(byte) != 0 || byte >= 0x80 || text_view("_./~").find(letter) != text_view::npos;
}

bool is_value_of_toml(text_view word) {
  constexpr std::array known{text_view("true"), text_view("false"), text_view("inf"), text_view("nan")};
  return std::find(known.begin(), known.end(), word) != known.end();
}

/// "30 s", "4MiB".
bool has_unit(text_view word) { return parse_duration(std::string(word)) || parse_size(std::string(word)); }

/// What a bare word should have been; "": it is no bare word.
std::string value_of(text_view word) {
  if (word.empty() || is_value_of_toml(word) || word.find_first_of("\"'\\") != text_view::npos)
    return {};
  if (!begins_as_word(word.front()))
    return has_unit(word) ? in_quotes(std::string(word)) : "";
  const auto lower = in_lower_case(word);
  return lower == "true" || lower == "false" ? lower : in_quotes(std::string(word));
}

/// The bytes of a line, without its end.
struct line_of_text {
  std::size_t begin = 0, end = 0;
};

std::optional<line_of_text> line_at(const std::string& text, std::int64_t number) {
  line_of_text at;
  for (std::int64_t line = 1; line < number; ++line) {
    const auto next = text.find('\n', at.begin);
    if (next == std::string::npos)
      return std::nullopt;
    at.begin = next + 1;
  }
  at.end = std::min(text.find('\n', at.begin), text.size());
  return at;
}

/// Where a string or comment that begins at `at` is over.
std::size_t end_of_string(text_view line, std::size_t at) {
  const char quote = line[at];
  for (++at; at < line.size() && line[at] != quote; ++at)
    if (line[at] == '\\' && quote == '"')
      ++at;
  return std::min(at + 1, line.size());
}

/// Counts characters of UTF-8, as toml++ counts columns.
std::int64_t characters(text_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0) != 0x80; });
}

} // namespace

std::optional<bare_word> bare_word_in(const std::string& text, std::int64_t number) {
  const auto at = line_at(text, number);
  if (!at)
    return std::nullopt;
  const auto line = text_view(text).substr(at->begin, at->end - at->begin);
  std::size_t depth = 0, value_from = text_view::npos; // brackets that are open; where a value may begin
  for (std::size_t i = 0; i <= line.size();) {
    const char letter = i < line.size() ? line[i] : '#';
    const bool closes = letter == '#' || (depth > 0 && (letter == ',' || letter == ']' || letter == '}'));
    if (closes && value_from != text_view::npos) {
      const auto word = without_blanks(line.substr(value_from, i - value_from));
      if (const auto value = value_of(word); !value.empty()) {
        const auto first = static_cast<std::size_t>(word.data() - line.data());
        return bare_word{.begin = at->begin + first,
                         .end = at->begin + first + word.size(),
                         .line = number,
                         .column = characters(line.substr(0, first)) + 1,
                         .written = std::string(word),
                         .value = value,
                         .corrected_line = std::string(without_blanks(std::string(line.substr(0, first)) + value)) +
                                           std::string(depth > 0 ? line.substr(first + word.size()) : text_view{})};
      }
    }
    if (letter == '#')
      break;
    if (letter == '"' || letter == '\'') {
      value_from = text_view::npos;
      i = end_of_string(line, i);
      continue;
    }
    const bool waits = value_from == text_view::npos;
    if ((letter == '=' && (waits || depth > 0)) || (letter == '[' && !waits) || (letter == ',' && depth > 0))
      value_from = i + 1;
    else if (letter == '{')
      value_from = text_view::npos;
    depth += letter == '[' || letter == '{' ? 1 : 0;
    depth -= depth > 0 && (letter == ']' || letter == '}') ? 1 : 0;
    ++i;
  }
  return std::nullopt;
}

} // namespace mneme
