#include "runtime/data/table_columns.hpp"
#include "runtime/base/column_names.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/printable.hpp"
#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
namespace mneme {
namespace {

constexpr std::size_t columns_max = 65'536;

/// A scenario key that names a column.
struct column_key {
  const char* key;
  const std::string& name;
  column_use use;
  bool is_needed; // true if the column must exist
};

/// True for names that pandas or readr gives to unnamed columns: "Unnamed: 0", "...1".
bool is_made_up_name(std::string_view name) {
  for (const std::string_view start : {"Unnamed: ", "..."})
    if (name.starts_with(start) && name.size() > start.size())
      return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(start.size()), name.end(),
                         [](unsigned char letter) { return std::isdigit(letter) != 0; });
  return false;
}

class header_reader {
public:
  header_reader(const data_section& data, const std::vector<std::string_view>& header, const std::string& place)
      : data_(data), place_(place) {
    columns_.names.assign(header.begin(), header.end());
    columns_.uses.assign(header.size(), column_use::number);
  }

  expected<table_columns> read() {
    if (columns_.names.size() > columns_max)
      return failed(
          place_, fmt::format("the header names {} columns; expected at most {}", columns_.names.size(), columns_max));
    ignore_columns();
    for (const auto& key : {column_key{"data.label_column", data_.label_column, column_use::label, true},
                            column_key{"data.split_column", data_.split_column, column_use::split,
                                       data_.split_column != data_section{}.split_column},
                            column_key{"data.domain_column", data_.domain_column, column_use::domain,
                                       data_.domain_column != data_section{}.domain_column}})
      find_column(key);
    check_names();
    check_made_up_names();
    columns_.numbers = std::count(columns_.uses.begin(), columns_.uses.end(), column_use::number);
    if (columns_.numbers == 0 && problems_.empty())
      add(fmt::format("the header names no column of numbers besides the label, only {}; expected at least one",
                      listed_names()));
    columns_.has_domains =
        std::find(columns_.uses.begin(), columns_.uses.end(), column_use::domain) != columns_.uses.end();
    if (!problems_.empty())
      return tl::unexpected(std::move(problems_));
    return std::move(columns_);
  }

private:
  void add(const std::string& text) { problems_.push_back({place_, printable(text)}); }

  void ignore_columns() {
    for (const auto& name : data_.ignore_columns) {
      bool is_known = false;
      for (std::size_t at = 0; at < columns_.names.size(); ++at)
        if (columns_.names[at] == name) {
          columns_.uses[at] = column_use::ignored;
          is_known = true;
        }
      if (!is_known)
        add(fmt::format("the header names no column '{}' (data.ignore_columns) but {}{}", name, listed_names(),
                        did_you_mean(csv::similar_name(name, columns_.names))));
    }
  }

  void find_column(const column_key& key) {
    const auto column = std::find(columns_.names.begin(), columns_.names.end(), key.name);
    if (column == columns_.names.end() || key.name.empty()) {
      if (key.use == column_use::label || (key.is_needed && !key.name.empty()))
        add_missing(key);
      else if (!key.name.empty())
        check_spelling(key);
      return;
    }
    auto& use = columns_.uses[static_cast<std::size_t>(column - columns_.names.begin())];
    if (use == column_use::ignored) {
      if (key.is_needed)
        add(fmt::format("data.ignore_columns leaves out '{}', which is {}; expected other columns", key.name, key.key));
    } else if (use != column_use::number) {
      add(fmt::format("the column '{}' is named by {} and by another key; expected a column for each", key.name,
                      key.key));
    } else {
      use = key.use;
    }
  }

  void add_missing(const column_key& key) {
    const auto meant = csv::similar_name(key.name, columns_.names);
    auto text = fmt::format("the header names no column '{}' ({}) but {}{}", key.name, key.key, listed_names(),
                            did_you_mean(meant));
    if (key.use == column_use::label) {
      const auto column = meant.empty() ? last_name() : meant;
      text += fmt::format("{} data.label_column to the column of the classes, as in data.label_column = \"{}\" or "
                          "--set data.label_column={}",
                          meant.empty() ? "; set" : " Set", column, column);
    }
    add(text);
  }

  /// Reports a column whose name differs from the name in the key only in case, because it is probably not a numeric
  /// column.
  void check_spelling(const column_key& key) {
    for (std::size_t at = 0; at < columns_.names.size(); ++at)
      if (columns_.uses[at] == column_use::number && csv::same_but_case(columns_.names[at], key.name))
        add(fmt::format("the header names a column '{}', and {} is \"{}\"; set {} = \"{}\" to read it as such, {} = "
                        "\"\" to read it as a column of numbers, or name it in data.ignore_columns",
                        columns_.names[at], key.key, key.name, key.key, columns_.names[at], key.key));
  }

  void check_names() {
    std::set<std::string> known, reported;
    for (std::size_t at = 0; at < columns_.names.size(); ++at) {
      const auto& name = columns_.names[at];
      if (columns_.uses[at] == column_use::ignored || name.empty())
        continue;
      if (!known.insert(name).second && reported.size() < csv::diagnostics_max && reported.insert(name).second)
        add(fmt::format("the header names the column '{}' twice; names must differ", name));
    }
  }

  void check_made_up_names() {
    for (std::size_t at = 0; at < columns_.names.size() && problems_.size() < csv::diagnostics_max; ++at) {
      const auto& name = columns_.names[at];
      if (columns_.uses[at] != column_use::number || !(name.empty() || is_made_up_name(name)))
        continue;
      const bool ends_line = name.empty() && at > 0 && at + 1 == columns_.names.size();
      add(fmt::format(
          "{}; {}, or leave it out with data.ignore_columns = [\"{}\"]",
          name.empty() ? fmt::format("column {} of the header has no name", at + 1)
                       : fmt::format("the column '{}' had no name when it was read before", name),
          ends_line ? "remove the delimiter at the end of each line, give the column a name"
                    : "if it is an index, write the table without it (pandas: index=False, R: row.names = FALSE); else "
                      "give it a name",
          name));
    }
  }

  [[nodiscard]] std::string last_name() const {
    const auto last = std::find_if(columns_.names.rbegin(), columns_.names.rend(),
                                   [](const std::string& name) { return !name.empty(); });
    return last == columns_.names.rend() ? "" : *last;
  }
  [[nodiscard]] static std::string did_you_mean(const std::string& meant) {
    return meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
  }
  [[nodiscard]] std::string listed_names() const {
    constexpr std::size_t listed_max = 12;
    auto listed = columns_.names;
    if (listed.size() > listed_max) {
      listed.resize(listed_max);
      listed.emplace_back("...");
    }
    return fmt::format("{}", fmt::join(listed, ", "));
  }

  const data_section& data_;
  const std::string& place_;
  table_columns columns_;
  diagnostics problems_;
};

} // namespace

expected<table_columns> find_table_columns(const data_section& data, const std::vector<std::string_view>& header,
                                           const std::string& place) {
  return header_reader(data, header, place).read();
}

} // namespace mneme
