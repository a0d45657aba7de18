#include "runtime/data/csv_table.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <unordered_map>
namespace mneme {
namespace {

// Shapes: N lines, F columns of numbers.

enum class column_use : std::uint8_t { number, label, split, domain };
constexpr std::size_t findings_of_column_max = 3;
constexpr std::size_t csv_columns_max = 65'536;

/// Words by the order in which they first came.
class known_words {
public:
  std::int32_t number_of(std::string_view word) {
    const auto [entry, is_new] = numbers_.try_emplace(std::string(word), static_cast<std::int32_t>(words_.size()));
    if (is_new)
      words_.emplace_back(word);
    return entry->second;
  }
  /// Brings the words into the order of classes, and `numbers` with them.
  std::vector<std::string> sorted(std::vector<std::int32_t>& first, std::vector<std::int32_t>& second) const {
    auto words = in_class_order(words_);
    std::vector<std::int32_t> place(words.size());
    for (std::size_t at = 0; at < words.size(); ++at)
      place[static_cast<std::size_t>(numbers_.at(words[at]))] = static_cast<std::int32_t>(at);
    for (auto* numbers : {&first, &second})
      for (auto& number : *numbers)
        number = place[static_cast<std::size_t>(number)];
    return words;
  }
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }

private:
  std::unordered_map<std::string, std::int32_t> numbers_; // only asked, never gone through
  std::vector<std::string> words_;
};

/// A part that grows: memory is taken for all lines and touched for those that came.
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

class csv_reader {
public:
  csv_reader(const data_section& data, std::string_view text)
      : data_(data), path_(data.file.string()), text_(csv::without_mark(text)) {}

  expected<csv_table> read() {
    if (auto wrong = read_header(); !wrong.empty())
      return tl::unexpected(std::move(wrong));
    if (auto wrong = take_memory(); !wrong.empty())
      return tl::unexpected(std::move(wrong));
    for (line_ = 2; !text_.empty() && wrong_.size() < csv::diagnostics_max; ++line_)
      if (const auto line = csv::next_line(text_); !line.empty())
        read_line(line);
    if (!wrong_.empty())
      return tl::unexpected(std::move(wrong_));
    if (train_.labels.empty())
      return failed(path_, test_.labels.empty() ? "has no line behind its header; expected a row in each"
                                                : "has no training row; expected some with split = train");
    return finished();
  }

private:
  void wrong(std::string text) { wrong_.push_back({fmt::format("{}:{}", path_, line_), std::move(text)}); }

  diagnostics read_header() {
    names_ = csv::fields_of(csv::next_line(text_));
    const auto place = path_ + ":1";
    if (names_.size() > csv_columns_max)
      return {{place, fmt::format("the header names {} columns; expected at most {}", names_.size(), csv_columns_max)}};
    diagnostics problems;
    uses_.assign(names_.size(), column_use::number);
    for (const auto& [name, use, needed] :
         {std::tuple{&data_.label_column, column_use::label, true},
          std::tuple{&data_.split_column, column_use::split, data_.split_column != data_section{}.split_column},
          std::tuple{&data_.domain_column, column_use::domain, data_.domain_column != data_section{}.domain_column}}) {
      const auto column = std::find(names_.begin(), names_.end(), *name);
      if (column != names_.end() && !name->empty())
        uses_[static_cast<std::size_t>(column - names_.begin())] = use;
      else if (needed && !(name->empty() && use != column_use::label))
        problems.push_back({place, absent_column(*name, use)});
    }
    auto sorted = names_;
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      problems.push_back(
          {place, fmt::format("the header names the column '{}' twice; names must differ", printable(*twice))});
    numbers_ = std::count(uses_.begin(), uses_.end(), column_use::number);
    if (numbers_ == 0)
      problems.push_back({place, "the header names no column of numbers beside the label; expected some"});
    has_domains_ = std::find(uses_.begin(), uses_.end(), column_use::domain) != uses_.end();
    return problems;
  }
  [[nodiscard]] std::string absent_column(const std::string& name, column_use use) const {
    const char* const key = use == column_use::label   ? "data.label_column"
                            : use == column_use::split ? "data.split_column"
                                                       : "data.domain_column";
    std::vector<std::string> known(names_.begin(), names_.end());
    const auto meant = nearest(name, known);
    if (known.size() > 12) {
      known.resize(12);
      known.emplace_back("...");
    }
    return printable(fmt::format("the header names no column '{}' ({}) but {}{}", name, key, fmt::join(known, ", "),
                                 meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant)));
  }

  diagnostics take_memory() {
    const auto lines = std::count(text_.begin(), text_.end(), '\n') + 1;
    const auto room = available_memory();
    if (lines * numbers_ > room.bytes / static_cast<std::int64_t>(sizeof(float)))
      return {{path_, fmt::format("{} lines of {} numbers take more than the {} bytes that are {}", lines, numbers_,
                                  room.bytes, room.source)}};
    for (auto* part : {&train_, &test_})
      part->reserve(lines, numbers_);
    row_.resize(static_cast<std::size_t>(numbers_));
    return {};
  }

  void read_line(std::string_view line) {
    std::size_t column = 0;
    auto* number = row_.data();
    std::int32_t label = 0, domain = 0;
    bool is_test = false, is_whole = true;
    for (; column < uses_.size(); ++column) {
      if (line.empty() && column + 1 < uses_.size())
        break;
      const auto field = csv::next_field(line);
      switch (uses_[column]) {
      case column_use::number:
        is_whole &= read_number(field, column, *number++);
        break;
      case column_use::label:
        is_whole &= read_word(field, "label", classes_, label);
        break;
      case column_use::domain:
        is_whole &= read_word(field, "domain", domains_, domain);
        break;
      case column_use::split:
        is_test = field == "test";
        if (!is_test && field != "train") {
          wrong(fmt::format("the column '{}' holds '{}'; expected train or test", names_[column], printable(field)));
          is_whole = false;
        }
        break;
      }
    }
    if (column < uses_.size() || !line.empty())
      return wrong(fmt::format("the line has {} than {} fields; expected one for each column of the header",
                               line.empty() ? "fewer" : "more", uses_.size()));
    if (is_whole)
      add_row(is_test ? test_ : train_, label, domain);
  }
  void add_row(growing_part& part, std::int32_t label, std::int32_t domain) {
    part.next = std::copy(row_.begin(), row_.end(), part.next);
    part.labels.push_back(label);
    if (has_domains_)
      part.domains.push_back(domain);
  }

  bool read_number(std::string_view field, std::size_t column, float& into) {
    const auto digits = field.starts_with('+') ? field.substr(1) : field;
    if (csv::is_number(digits, into) && std::isfinite(into))
      return true;
    if (broken_.size() < names_.size())
      broken_.resize(names_.size(), 0);
    if (++broken_[column] <= findings_of_column_max)
      wrong(fmt::format("the column '{}' holds '{}'; expected a finite number{}", printable(names_[column]),
                        printable(field.substr(0, 100)),
                        broken_[column] == findings_of_column_max ? " (further lines of this column are not named)"
                                                                  : ""));
    return false;
  }

  bool read_word(std::string_view field, const char* noun, known_words& words, std::int32_t& into) {
    if (field.empty()) {
      wrong(fmt::format("the {} is empty; expected a word or a number", noun));
      return false;
    }
    into = words.number_of(field);
    if (static_cast<std::int64_t>(words.size()) <= own_classes_max)
      return true;
    wrong(fmt::format("has more than {} different {}s; is it the right column?", own_classes_max, noun));
    text_ = {};
    return false;
  }

  expected<csv_table> finished() {
    csv_table table;
    table.classes = {.where = path_,
                     .count = static_cast<std::int64_t>(classes_.size()),
                     .names = classes_.sorted(train_.labels, test_.labels),
                     .domains = domains_.sorted(train_.domains, test_.domains)};
    auto problems = wrong_names(table.classes.names, path_);
    append(problems, wrong_names(table.classes.domains, path_));
    if (!problems.empty())
      return tl::unexpected(std::move(problems));
    table.train = train_.table(numbers_);
    table.test = test_.table(numbers_);
    return table;
  }

  const data_section& data_;
  std::string path_;
  std::string_view text_;
  std::size_t line_ = 1;
  std::vector<std::string_view> names_;
  std::vector<column_use> uses_;
  std::int64_t numbers_ = 0; // columns
  bool has_domains_ = false;
  std::vector<float> row_;
  std::vector<std::size_t> broken_; // fields by column
  known_words classes_, domains_;
  growing_part train_, test_;
  diagnostics wrong_;
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
