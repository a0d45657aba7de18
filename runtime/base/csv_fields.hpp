/// csv_fields: records and fields of CSV text (RFC 4180), for all readers of such files.
#pragma once
#include <charconv>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>
namespace mneme::csv {

/// A file that is wrong on every line is reported with at most so many diagnostics.
inline constexpr std::size_t diagnostics_max = 20;

/// `text` without the byte order mark that some programs write first.
[[nodiscard]] std::string_view without_mark(std::string_view text);

/// Cuts CSV text into records, one per line. Lines end with LF, CR LF or CR; blank lines are skipped; a byte order mark
/// is skipped. Fields are separated by commas, or by semicolons or tabs where the first record has these and no comma.
/// A field that begins with a quote ends with one: between them it may hold delimiters and line breaks, and "" stands
/// for one quote. Blanks around fields do not count, those within quotes do.
class record_reader {
public:
  /// @param text must outlive the reader
  explicit record_reader(std::string_view text);

  /// Reads the next record. False at the end of the text.
  [[nodiscard]] bool next();
  /// The fields of the record, valid until the next call of next().
  [[nodiscard]] const std::vector<std::string_view>& fields() const noexcept { return fields_; }
  /// The line on which the record begins, from 1.
  [[nodiscard]] std::size_t line() const noexcept { return line_; }
  /// What is wrong with the quotes of the record, and its fields are incomplete; "" if nothing is.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
  void read_record();
  bool read_field(); // false: it was the record's last one
  bool read_quoted_field();
  bool end_field(); // false: the record has ended with it
  void end_line();
  void skip_line();
  void skip_blanks();
  [[nodiscard]] bool is_blank(char letter) const { return letter == ' ' || (letter == '\t' && delimiter_ != '\t'); }

  std::string_view text_; // not yet read
  char delimiter_ = ',';
  std::size_t line_ = 1, next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_; // contents of fields with doubled quotes
  bool has_quotes_ = false;
  std::string error_;
};

/// `text` as a field of a line that is written: in quotes where a reader would otherwise change it.
[[nodiscard]] std::string field_text(std::string_view text);

/// True if the whole field is a number of this kind, which is then written to `into`. A "+" may precede it.
template <class Number>
[[nodiscard]] bool is_number(std::string_view field, Number& into) {
  if (field.starts_with('+') && !field.starts_with("+-"))
    field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), into);
  return error == std::errc{} && end == field.data() + field.size();
}
/// The nearest float or double; a number too small for one is 0, one too large is none.
[[nodiscard]] bool is_number(std::string_view field, float& into);
[[nodiscard]] bool is_number(std::string_view field, double& into);
/// True if the field is a finite number that no float can hold.
[[nodiscard]] bool is_above_float(std::string_view field);

} // namespace mneme::csv
