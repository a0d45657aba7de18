/// table_columns: what each column of a user's table is used for, by its header and the keys of [data].
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
#include <string>
#include <string_view>
#include <vector>
namespace mneme {

enum class column_use : std::uint8_t {
  number,
  label,
  split,  ///< Says "train" or "test".
  domain, ///< Names the domain of the row.
  ignored ///< data.ignore_columns names it.
};

struct table_columns {
  std::vector<std::string> names{};
  std::vector<column_use> uses{};
  std::int64_t numbers = 0; ///< How many columns hold numbers.
  bool has_domains = false;
};

/// Finds the columns that the keys name among the fields of the header. Fails on a column that is missing, named twice
/// or without a name, and where no column of numbers is left. @param place "table.csv:1"
[[nodiscard]] expected<table_columns>
find_table_columns(const data_section& data, const std::vector<std::string_view>& header, const std::string& place);

} // namespace mneme
