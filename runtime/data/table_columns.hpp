/// table_columns: determines the role of each table column from the header and the keys of [data].
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
  split,  ///< The part of the row, "train" or "test".
  domain, ///< The domain of the row.
  ignored ///< Listed in data.ignore_columns.
};

struct table_columns {
  std::vector<std::string> names{};
  std::vector<column_use> uses{};
  std::int64_t numbers = 0; ///< Number of numeric columns.
  bool has_domains = false;
};

/// Determines the columns from a header. Fails if a required column is missing, duplicate or unnamed, or if no numeric
/// column remains. @param place location of the header, such as "table.csv:1"
[[nodiscard]] expected<table_columns>
find_table_columns(const data_section& data, const std::vector<std::string_view>& header, const std::string& place);

} // namespace mneme
