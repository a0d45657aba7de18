/// splits: combines the train and test parts of a data source and limits their rows.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/row_filter.hpp"
namespace mneme {

/// Returns the errors of all results, in order; an empty list if there are none.
template <class... Results>
[[nodiscard]] diagnostics all_diagnostics(const Results&... results) {
  diagnostics problems;
  ((results ? void(0) : void(problems.insert(problems.end(), results.error().begin(), results.error().end()))), ...);
  return problems;
}

/// Returns `about` with both splits, or the errors of both.
[[nodiscard]] expected<raw_data> with_splits(raw_data about, expected<image_table> train, expected<image_table> test);

/// A table with the given rows. @param rows ascending
[[nodiscard]] image_table selected(const image_table& table, const std::vector<std::int64_t>& rows);

/// A table with the rows within `limits`.
[[nodiscard]] image_table limited(image_table table, row_limits limits, std::int64_t classes);

} // namespace mneme
