/// report: text printed at the end of a run.
#pragma once
#include "runtime/base/elapsed_text.hpp"
#include "runtime/results/run_directory.hpp"
namespace mneme {

/// Formats bytes, such as "12.3 MiB"; from 10,000 MiB on as GiB.
[[nodiscard]] std::string mebibytes_text(std::int64_t bytes);
/// Formats a percentage, such as "71.25 %"; "-" if undefined.
[[nodiscard]] std::string percent_text(const std::optional<double>& percent);

/// Formats the accuracy of each task after each task as an aligned table. With more than 20 tasks: of each task when it
/// was trained, and at the end. Empty for an empty matrix.
[[nodiscard]] std::string matrix_text(const accuracy_matrix& matrix);
/// Formats table and main metrics, with `run digest <hex>` as the last line, without a final line break.
[[nodiscard]] std::string report_text(const run_summary& summary, const accuracy_matrix& matrix,
                                      const std::string& directory);

} // namespace mneme
