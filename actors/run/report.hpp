/// report: what a run says on the screen when it is over.
#pragma once
#include "runtime/base/elapsed_text.hpp"
#include "runtime/results/run_directory.hpp"
namespace mneme {

/// "12.3 MiB"; numbers from 10,000 MiB on as GiB.
[[nodiscard]] std::string mebibytes_text(std::int64_t bytes);
/// "71.25 %", or "-" where it is undefined.
[[nodiscard]] std::string percent_text(const std::optional<double>& percent);

/// Accuracy of each task after each task as an aligned table; of more than 20 tasks, each when it was
/// learnt and at the end. "" for an empty matrix.
[[nodiscard]] std::string matrix_text(const accuracy_matrix& matrix);
/// The table, the main figures, and `run digest <hex>` as the last line, without a final line break.
[[nodiscard]] std::string report_text(const run_summary& summary, const accuracy_matrix& matrix,
                                      const std::string& directory);

} // namespace mneme
