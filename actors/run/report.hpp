/// report: text printed at the end of a run.
#pragma once
#include "runtime/base/elapsed_text.hpp"
#include "runtime/results/run_directory.hpp"
namespace mneme {

/// Formats bytes as "12.3 MiB", or as GiB from 10,000 MiB on.
[[nodiscard]] std::string mebibytes_text(std::int64_t bytes);
/// Formats a percentage as "71.25 %", or "-" if it is undefined.
[[nodiscard]] std::string percent_text(const std::optional<double>& percent);

/// Formats the accuracy of each task after each task as an aligned table. With more than 20 tasks it has two values per
/// task: after the task was trained, and at the end. Returns "" for an empty matrix.
[[nodiscard]] std::string matrix_text(const accuracy_matrix& matrix);
/// Formats table and main metrics, with `run digest <hex>` as the last line, without a final line break.
[[nodiscard]] std::string report_text(const run_summary& summary, const accuracy_matrix& matrix,
                                      const std::string& directory);

} // namespace mneme
