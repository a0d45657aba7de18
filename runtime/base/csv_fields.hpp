/// csv_fields: records and fields of CSV text (RFC 4180), for all readers of such files.
#pragma once
#include <charconv>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>
namespace mneme::csv {

/// Maximum number of diagnostics for one file.
inline constexpr std::size_t diagnostics_max = 20;

/// Returns `text` without a leading byte order mark.
[[nodiscard]] std::string_view strip_bom(std::string_view text);

/// Splits CSV text into records, one per line. Lines end with LF, CR LF or CR; blank lines and a byte order mark are
/// skipped. The delimiter is a comma, or a semicolon or tab if the first record contains it and no comma. A quoted
/// field may contain delimiters, line breaks and doubled quotes. Blanks around fields are ignored; blanks in quotes are
/// kept.
class record_reader {
public:
  /// @param text must outlive the reader
  explicit record_reader(std::string_view text);

  /// Reads the next record. Returns false at the end of the text.
  [[nodiscard]] bool next();
  /// The record's fields; valid until the next call of next().
  [[nodiscard]] const std::vector<std::string_view>& fields() const noexcept { return fields_; }
  /// Line number on which the record begins, from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// Error in the record's quotes; its fields are then incomplete. Returns "" if there is no error.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
  void read_record();
  bool read_field(); // returns false after the record's last field
  bool read_quoted_field();
  bool end_field(); // returns false if the record ends with this field
  void end_line();
  void skip_line();
  void skip_blanks();
  [[nodiscard]] bool is_blank(char letter) const { return letter == ' ' || (letter == '\t' && delimiter_ != '\t'); }

  std::string_view text_; // the unread text
  char delimiter_ = ',';
  std::size_t line_ = 1, next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_; // fields with doubled quotes, unescaped
  bool has_quotes_ = false;
  std::string error_;
};

/// Formats `text` as a CSV field; adds quotes if a reader would misread it without them.
[[nodiscard]] std::string field_text(std::string_view text);

/// Parses a number into `into`. Returns true if the whole field is a number; a leading "+" is allowed. On failure,
/// `into` is unspecified.
template <class Number>
[[nodiscard]] bool parse_number(std::string_view field, Number& into) {
  if (field.starts_with('+') && !field.starts_with("+-"))
    field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), into);
  return error == std::errc{} && end == field.data() + field.size();
}
/// Parses the nearest float. Underflow gives 0; overflow returns false. An overload exists for double.
[[nodiscard]] bool parse_number(std::string_view field, float& into);
[[nodiscard]] bool parse_number(std::string_view field, double& into);
/// True if the field is a finite number that exceeds the range of float.
[[nodiscard]] bool is_above_float(std::string_view field);

} // namespace mneme::csv
