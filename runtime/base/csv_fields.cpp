#include "runtime/base/csv_fields.hpp"
#include "runtime/base/decimal_text.hpp"
#include "runtime/base/trim.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme::csv {
namespace {

/// Detects the delimiter. It is a semicolon or a tab if the first line contains one outside of quotes and no comma;
/// otherwise a comma.
char delimiter_of(std::string_view text) {
  bool quoted = false, has_semicolon = false, has_tab = false;
  for (const char letter : text) {
    quoted ^= letter == '"';
    if (quoted)
      continue;
    if (letter == ',')
      return ',';
    if (letter == '\n' || letter == '\r')
      break;
    has_semicolon |= letter == ';';
    has_tab |= letter == '\t';
  }
  return has_semicolon ? ';' : has_tab ? '\t' : ',';
}

template <class Real>
bool read_real(std::string_view field, Real& into) {
  if (field.starts_with('+') && !field.starts_with("+-"))
    field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), into);
  if (end != field.data() + field.size())
    return false;
  if (error != std::errc::result_out_of_range)
    return error == std::errc{};
  const auto exact = parse_decimal(field);
  if (!exact || exact->exponent > 0)
    return false;
  into = exact->negative ? Real{-0.0} : Real{0.0}; // the value underflows to zero
  return true;
}

} // namespace

std::string_view strip_bom(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF"))
    text.remove_prefix(3);
  return text;
}

record_reader::record_reader(std::string_view text) : text_(strip_bom(text)) {
  auto first = text_;
  first.remove_prefix(std::min(first.find_first_not_of(" \t\r\n"), first.size()));
  delimiter_ = delimiter_of(first);
}

bool record_reader::next() {
  while (!text_.empty()) {
    read_record();
    const bool blank = fields_.size() == 1 && fields_.front().empty() && !has_quotes_ && error_.empty();
    if (!blank)
      return true;
  }
  fields_.clear();
  return false;
}

void record_reader::read_record() {
  fields_.clear();
  unescaped_.clear();
  error_.clear();
  has_quotes_ = false;
  line_ = next_line_;
  while (read_field()) {
  }
}

bool record_reader::read_field() {
  skip_blanks();
  if (text_.starts_with('"'))
    return read_quoted_field();
  std::size_t end = 0;
  while (end < text_.size() && text_[end] != delimiter_ && text_[end] != '\n' && text_[end] != '\r')
    ++end;
  fields_.push_back(trim(text_.substr(0, end)));
  text_.remove_prefix(end);
  return end_field();
}

bool record_reader::read_quoted_field() {
  has_quotes_ = true;
  const auto begin = next_line_;
  std::size_t end = 1, doubled = 0;
  for (;; ++end) {
    if (end == text_.size()) {
      error_ = fmt::format("a quote that opens on line {} is never closed; expected a closing quote, and \"\" for a "
                           "quote within quotes",
                           begin);
      text_ = {};
      return false;
    }
    if (text_[end] == '"') {
      if (end + 1 == text_.size() || text_[end + 1] != '"')
        break;
      ++doubled;
      ++end;
    }
    const bool ends_line = text_[end] == '\n' || (text_[end] == '\r' && text_.substr(end + 1, 1) != "\n");
    next_line_ += ends_line ? 1 : 0;
  }
  auto content = text_.substr(1, end - 1);
  text_.remove_prefix(end + 1);
  if (doubled > 0) {
    auto& text = unescaped_.emplace_back();
    text.reserve(content.size() - doubled);
    for (std::size_t at = 0; at < content.size(); ++at) {
      text += content[at];
      at += content[at] == '"' ? 1 : 0;
    }
    content = text;
  }
  fields_.push_back(content);
  return end_field();
}

bool record_reader::end_field() {
  skip_blanks();
  if (text_.starts_with(delimiter_)) {
    text_.remove_prefix(1);
    return true;
  }
  if (!text_.empty() && text_.front() != '\n' && text_.front() != '\r') {
    error_ =
        fmt::format("text follows the closing quote of field {}; expected a delimiter, and \"\" for a quote within "
                    "quotes",
                    fields_.size());
    skip_line();
  }
  end_line();
  return false;
}

void record_reader::end_line() {
  if (text_.empty())
    return;
  ++next_line_;
  text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
}

void record_reader::skip_line() { text_.remove_prefix(std::min(text_.find_first_of("\r\n"), text_.size())); }

void record_reader::skip_blanks() {
  while (!text_.empty() && is_blank(text_.front()))
    text_.remove_prefix(1);
}

std::string field_text(std::string_view text) {
  const bool changes = text.find_first_of(",\"\r\n") != std::string_view::npos || trim(text) != text;
  if (!changes)
    return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text)
    quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted + '"';
}

bool parse_number(std::string_view field, float& into) { return read_real(field, into); }
bool parse_number(std::string_view field, double& into) { return read_real(field, into); }

bool is_above_float(std::string_view field) {
  float ignored = 0.0F;
  const auto exact = parse_decimal(field);
  return exact && exact->exponent > 0 && !parse_number(field, ignored);
}

} // namespace mneme::csv
