#include "runtime/scenario/unquoted_strings.hpp"
#include "runtime/base/trim.hpp"
#include "runtime/options/unit_text.hpp"
#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
namespace mneme {
namespace {

using text_view = std::string_view;

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

/// True for a number with a unit, such as "30 s" or "4MiB".
bool has_unit(text_view word) { return parse_duration(std::string(word)) || parse_size(std::string(word)); }

/// Removes the leading digits from `text` and returns them without underscores.
std::string take_digits(text_view& text) {
  std::string digits;
  while (!text.empty() && (std::isdigit(static_cast<unsigned char>(text.front())) != 0 || text.front() == '_')) {
    if (text.front() != '_')
      digits += text.front();
    text.remove_prefix(1);
  }
  return digits;
}

/// True if the digits are legal in TOML: every underscore is between two digits.
bool has_legal_underscores(text_view digits) {
  return digits.find("__") == text_view::npos && (digits.empty() || (digits.front() != '_' && digits.back() != '_'));
}

/// Returns the TOML value that should replace a bare word, or "" if `word` is not a bare word.
std::string value_of(text_view word) {
  if (const auto number = number_of(word); !number.empty())
    return number;
  if (word.empty() || is_value_of_toml(word) || word.find_first_of("\"'\\") != text_view::npos)
    return {};
  if (!begins_as_word(word.front()))
    return has_unit(word) ? quote_text(std::string(word)) : "";
  const auto lower = in_lower_case(word);
  return lower == "true" || lower == "false" ? lower : quote_text(std::string(word));
}

/// Byte range of a line without its line break.
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

/// Offset of the end of the string or comment that begins at `at`.
std::size_t end_of_string(text_view line, std::size_t at) {
  const char quote = line[at];
  for (++at; at < line.size() && line[at] != quote; ++at)
    if (line[at] == '\\' && quote == '"')
      ++at;
  return std::min(at + 1, line.size());
}

/// Number of UTF-8 characters, because toml++ counts columns in characters.
std::int64_t characters(text_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char letter) { return (static_cast<unsigned char>(letter) & 0xc0) != 0x80; });
}

/// Returns the first bare word of a line, or nullopt. @param depth number of brackets that are open at the start of the
/// line
std::optional<unquoted_string> bare_word_of(text_view line, std::size_t depth) {
  std::size_t value_from = depth > 0 ? 0 : text_view::npos; // offset at which a value may begin
  for (std::size_t i = 0; i <= line.size();) {
    const char letter = i < line.size() ? line[i] : '#';
    const bool closes = letter == '#' || (depth > 0 && (letter == ',' || letter == ']' || letter == '}'));
    if (closes && value_from != text_view::npos) {
      const auto word = trim(line.substr(value_from, i - value_from));
      if (const auto value = value_of(word); !value.empty()) {
        const auto first = static_cast<std::size_t>(word.data() - line.data());
        return unquoted_string{.begin = first,
                               .end = first + word.size(),
                               .column = characters(line.substr(0, first)) + 1,
                               .written = std::string(word),
                               .value = value,
                               .is_number = !number_of(word).empty(),
                               .corrected_line =
                                   std::string(trim(std::string(line.substr(0, first)) + value)) +
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

} // namespace

std::string number_of(std::string_view word) {
  auto unread = word;
  const bool is_signed = !unread.empty() && (unread.front() == '-' || unread.front() == '+');
  const std::string sign = is_signed && unread.front() == '-' ? "-" : "";
  unread.remove_prefix(is_signed ? 1 : 0);

  const auto whole_begin = unread;
  auto whole = take_digits(unread);
  bool is_legal = has_legal_underscores(whole_begin.substr(0, whole_begin.size() - unread.size())) && !whole.empty() &&
                  (whole.size() == 1 || whole.front() != '0');
  const bool has_comma = !unread.empty() && unread.front() == ',';
  const bool has_point = has_comma || (!unread.empty() && unread.front() == '.');
  unread.remove_prefix(has_point ? 1 : 0);
  const auto fraction_begin = unread;
  auto fraction = take_digits(unread);
  is_legal = is_legal && !has_comma && has_point == !fraction.empty() &&
             has_legal_underscores(fraction_begin.substr(0, fraction_begin.size() - unread.size()));
  if (whole.empty() && fraction.empty())
    return {};
  if (has_comma && (whole.empty() || fraction.empty() || fraction.size() == 3))
    return {}; // ambiguous, because 1,000 may mean one thousand

  std::string exponent;
  if (!unread.empty() && (unread.front() == 'e' || unread.front() == 'E')) {
    exponent = "e";
    unread.remove_prefix(1);
    if (!unread.empty() && (unread.front() == '-' || unread.front() == '+')) {
      exponent += unread.front();
      unread.remove_prefix(1);
    }
    const auto digits = take_digits(unread);
    if (digits.empty())
      return {};
    exponent += digits;
  }
  if (!unread.empty() || is_legal)
    return {};
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  return sign + (whole.empty() ? "0" : whole) + (has_point ? "." + (fraction.empty() ? "0" : fraction) : "") + exponent;
}

std::string with_numbers_of_toml(std::string_view value) {
  std::string text = "value = " + std::string(value);
  const auto lead = text.size() - value.size();
  bool is_replaced = false;
  while (const auto word = find_unquoted_string(text, 1)) {
    if (!word->is_number)
      return {};
    text.replace(word->begin, word->end - word->begin, word->value);
    is_replaced = true;
  }
  return is_replaced ? text.substr(lead) : "";
}

std::optional<unquoted_string> find_unquoted_string(const std::string& text, std::int64_t number) {
  const auto at = line_at(text, number);
  if (!at)
    return std::nullopt;
  const auto line = text_view(text).substr(at->begin, at->end - at->begin);
  auto word = bare_word_of(line, 0);
  if (!word && line.find('=') == text_view::npos) // may be a line of a multi-line list
    if (word = bare_word_of(line, 1); word && !word->is_number)
      return std::nullopt;
  if (word) {
    word->begin += at->begin;
    word->end += at->begin;
    word->line = number;
  }
  return word;
}

} // namespace mneme
