#include "runtime/base/csv_fields.hpp"
#include "runtime/base/blanks.hpp"
#include <algorithm>
namespace mneme::csv {
namespace {

struct cut_field {
  std::string_view field{};
  bool comma_follows = false;
};

cut_field cut(std::string_view& text) {
  std::size_t end = 0;
  for (bool quoted = false; end < text.size() && (quoted || text[end] != ','); ++end)
    quoted ^= text[end] == '"';
  cut_field first{.field = without_blanks(text.substr(0, end)), .comma_follows = end < text.size()};
  text.remove_prefix(std::min(end + 1, text.size()));
  auto& field = first.field;
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
    field = without_blanks(field.substr(1, field.size() - 2));
  return first;
}

} // namespace

std::string_view without_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF"))
    text.remove_prefix(3);
  return text;
}

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = without_blanks(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view next_field(std::string_view& text) { return cut(text).field; }

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (bool more = true; more;) {
    const auto next = cut(line);
    fields.push_back(next.field);
    more = next.comma_follows;
  }
  return fields;
}

std::string field_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text)
    quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted + '"';
}

} // namespace mneme::csv
