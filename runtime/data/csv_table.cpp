#include "runtime/data/csv_table.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/base/trim.hpp"
#include "runtime/data/table_columns.hpp"
#include "runtime/data/table_words.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

// Shapes: N records, F columns of numbers.

constexpr std::size_t findings_of_column_max = 3;

/// Rows of one part. Memory is reserved for all lines; the system commits only the pages that are written.
struct growing_part {
  at::Tensor values{}; // [N, F]
  float* next = nullptr;
  std::vector<std::int32_t> labels{}, domains{};

  void reserve(std::int64_t lines, std::int64_t columns) {
    values = new_tensor({lines, columns}, at::kFloat);
    next = values.mutable_data_ptr<float>();
  }
  [[nodiscard]] image_table table(std::int64_t columns) {
    const auto rows = std::ssize(labels);
    return {.images = values.narrow(0, 0, rows).view({rows, 1, 1, columns}),
            .labels = std::move(labels),
            .domains = std::move(domains)};
  }
};

/// Upper bound on the number of records in the text.
std::int64_t count_lines(std::string_view text) {
  std::int64_t lines = 1;
  for (std::size_t at = 0; at < text.size(); ++at)
    lines += text[at] == '\n' || (text[at] == '\r' && text.substr(at + 1, 1) != "\n") ? 1 : 0;
  return lines;
}

class csv_reader {
public:
  csv_reader(const data_section& data, std::string_view text)
      : data_(data), path_(data.file.string()), text_(text), records_(text) {}

  expected<csv_table> read() {
    if (auto errors = read_header(); !errors.empty())
      return tl::unexpected(std::move(errors));
    if (auto errors = take_memory(); !errors.empty())
      return tl::unexpected(std::move(errors));
    while (!has_too_many_words_ && errors_.size() < csv::diagnostics_max && records_.next())
      read_record();
    if (!errors_.empty())
      return tl::unexpected(std::move(errors_));
    if (train_.labels.empty())
      return failed(path_, test_.labels.empty() ? "has no line after its header; expected a row in each"
                                                : "has no training row; expected some with split = train");
    return finished();
  }

private:
  void add_error(std::string text) {
    errors_.push_back({fmt::format("{}:{}", path_, records_.line()), std::move(text)});
  }

  diagnostics read_header() {
    if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF"))
      return {{path_, "is UTF-16; expected UTF-8: save it as \"CSV UTF-8\""}};
    if (!records_.next())
      return {{path_, "holds only blanks; expected a header that names the columns, and a row in every other line"}};
    const auto place = fmt::format("{}:{}", path_, records_.line());
    if (!records_.error().empty())
      return {{place, records_.error()}};
    auto columns = find_table_columns(data_, records_.fields(), place);
    if (!columns)
      return columns.error();
    columns_ = std::move(*columns);
    broken_.resize(columns_.names.size(), 0);
    return {};
  }

  diagnostics take_memory() {
    const auto lines = count_lines(text_);
    const auto room = available_memory();
    if (lines * columns_.numbers > room.bytes / static_cast<std::int64_t>(sizeof(float)))
      return {{path_, fmt::format("{} lines of {} numbers take more than the {} bytes that are {}", lines,
                                  columns_.numbers, room.bytes, room.source)}};
    for (auto* part : {&train_, &test_})
      part->reserve(lines, columns_.numbers);
    row_.resize(static_cast<std::size_t>(columns_.numbers));
    return {};
  }

  void read_record() {
    if (!records_.error().empty())
      return add_error(records_.error());
    const auto& fields = records_.fields();
    if (fields.size() != columns_.uses.size())
      return field_count_error(fields);
    if (std::all_of(fields.begin(), fields.end(), [](std::string_view field) { return field.empty(); }))
      return add_error("the line has delimiters and no value; remove it");
    auto* number = row_.data();
    std::int32_t label = 0, domain = 0;
    bool is_test = false, is_whole = true;
    for (std::size_t column = 0; column < fields.size(); ++column)
      switch (columns_.uses[column]) {
      case column_use::number:
        is_whole &= read_number(fields[column], column, *number++);
        break;
      case column_use::label:
        is_whole &= read_word(fields[column], column, "label", classes_, label);
        break;
      case column_use::domain:
        is_whole &= read_word(fields[column], column, "domain", domains_, domain);
        break;
      case column_use::split:
        is_whole &= read_split(fields[column], column, is_test);
        break;
      case column_use::ignored:
        break;
      }
    if (is_whole)
      add_row(is_test ? test_ : train_, label, domain);
  }
  void field_count_error(const std::vector<std::string_view>& fields) {
    const bool ends_with_delimiter = fields.size() == columns_.uses.size() + 1 && fields.back().empty();
    add_error(fmt::format("the line has {} field{}; expected {}, one for each column of the header{}", fields.size(),
                          fields.size() == 1 ? "" : "s", columns_.uses.size(),
                          ends_with_delimiter ? ": remove the delimiter at its end" : ""));
  }
  void add_row(growing_part& part, std::int32_t label, std::int32_t domain) {
    part.next = std::copy(row_.begin(), row_.end(), part.next);
    part.labels.push_back(label);
    if (columns_.has_domains)
      part.domains.push_back(domain);
  }

  bool read_number(std::string_view field, std::size_t column, float& into) {
    const auto digits = trim(field); // removes white space inside quotes
    if (csv::parse_number(digits, into) && std::isfinite(into))
      return true;
    if (++broken_[column] <= findings_of_column_max)
      add_error(
          fmt::format("the column '{}' {}{}", printable(columns_.names[column]), number_error(digits, column),
                      broken_[column] == findings_of_column_max ? " (other lines of this column are not listed)" : ""));
    return false;
  }
  [[nodiscard]] std::string number_error(std::string_view field, std::size_t column) const {
    constexpr std::size_t quoted_max = 100;
    const auto value = printable(field.substr(0, quoted_max));
    float number = 0.0F;
    if (field.empty())
      return "is empty; expected a finite number: fill it in, or leave the row out";
    if (csv::parse_number(field, number)) // a number that is NaN or infinite
      return fmt::format("holds '{}'; expected a finite number: fill it in, or leave the row out", value);
    if (csv::is_above_float(field))
      return fmt::format("holds '{}', which float32 cannot hold; expected a number of at most 3.4e38 in size: scale "
                         "the column",
                         value);
    if (auto text = std::string(field); std::count(text.begin(), text.end(), ',') == 1) {
      text[text.find(',')] = '.';
      if (csv::parse_number(text, number))
        return fmt::format("holds '{}'; expected a decimal point, as in {}", value, printable(text));
    }
    return fmt::format("holds '{}'; expected a finite number: write categories as numbers, or leave the column out "
                       "with data.ignore_columns = [\"{}\"]",
                       value, printable(columns_.names[column]));
  }

  bool read_word(std::string_view field, std::size_t column, const char* noun, table_words& words, std::int32_t& into) {
    if (field.empty()) {
      if (++broken_[column] <= findings_of_column_max)
        add_error(fmt::format("the column '{}' is empty; expected a {}, a word or a number",
                              printable(columns_.names[column]), noun));
      return false;
    }
    into = words.number_of(field, records_.line());
    if (static_cast<std::int64_t>(words.size()) <= own_classes_max)
      return true;
    add_error(fmt::format("the column '{}' has more than {} different {}s; is it the right column?",
                          printable(columns_.names[column]), own_classes_max, noun));
    has_too_many_words_ = true;
    return false;
  }

  bool read_split(std::string_view field, std::size_t column, bool& is_test) {
    is_test = field == "test";
    if (is_test || field == "train")
      return true;
    add_error(fmt::format("the column '{}' holds '{}'; expected train or test", printable(columns_.names[column]),
                          printable(field)));
    return false;
  }

  expected<csv_table> finished() {
    auto problems = classes_.validate(path_);
    append(problems, domains_.validate(path_));
    csv_table table;
    table.classes = {.where = path_,
                     .count = static_cast<std::int64_t>(classes_.size()),
                     .names = classes_.sorted(train_.labels, test_.labels),
                     .domains = domains_.sorted(train_.domains, test_.domains)};
    append(problems, validate_names(table.classes.names, path_));
    append(problems, validate_names(table.classes.domains, path_));
    if (!problems.empty())
      return tl::unexpected(std::move(problems));
    table.train = train_.table(columns_.numbers);
    table.test = test_.table(columns_.numbers);
    return table;
  }

  const data_section& data_;
  std::string path_;
  std::string_view text_;
  csv::record_reader records_;
  table_columns columns_;
  std::vector<float> row_;
  std::vector<std::size_t> broken_; // number of invalid fields per column
  table_words classes_{"label"}, domains_{"domain"};
  bool has_too_many_words_ = false;
  growing_part train_, test_;
  diagnostics errors_;
};

} // namespace

expected<csv_table> read_csv_table(const data_section& data) {
  const auto room = available_memory();
  const auto text = text_of_file(data.file, static_cast<std::uint64_t>(std::max<std::int64_t>(room.bytes, 0)));
  if (!text)
    return tl::unexpected(text.error());
  return csv_reader(data, *text).read();
}

} // namespace mneme
