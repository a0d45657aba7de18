/// splits: putting together what a data source has read, train and test, and cutting it to size.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
namespace mneme {

/// All that is wrong with any of the results, in their order; empty if nothing is.
template <class... Results>
[[nodiscard]] diagnostics all_diagnostics(const Results&... results) {
  diagnostics problems;
  ((results ? void(0) : void(problems.insert(problems.end(), results.error().begin(), results.error().end()))), ...);
  return problems;
}

/// `about` with both splits, or all that is wrong with either.
[[nodiscard]] expected<raw_data> with_splits(raw_data about, expected<image_table> train, expected<image_table> test);

/// These rows of `table`, ascending, in a table of their own.
[[nodiscard]] image_table selected(const image_table& table, const std::vector<std::int64_t>& rows);

/// The rows that `limits` keep.
[[nodiscard]] image_table limited(image_table table, row_limits limits, std::int64_t classes);

} // namespace mneme
