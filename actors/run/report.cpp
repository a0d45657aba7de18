#include "actors/run/report.hpp"
#include <fmt/format.h>
#include <iterator>
namespace mneme {
namespace {

constexpr std::size_t columns_max = 20; // columns of 7 characters that fit a wide terminal

std::string full_table(const accuracy_matrix& matrix) {
  std::string text = "after task     all |";
  for (std::size_t s = 1; s <= matrix.rows.size(); ++s)
    text += fmt::format("{:7}", s);
  for (std::size_t t = 0; t < matrix.rows.size(); ++t) {
    text += fmt::format("\n{:10}{:8.2f} |", t + 1, matrix.pooled[t]);
    for (double accuracy : matrix.rows[t])
      text += fmt::format("{:7.2f}", accuracy);
  }
  return text;
}

std::string first_and_last(const accuracy_matrix& matrix) {
  std::string text = "      task   when trained  at the end";
  for (std::size_t t = 0; t < matrix.rows.size(); ++t)
    text += fmt::format("\n{:10}{:14.2f}{:13.2f}", t + 1, matrix.rows[t][t], matrix.rows.back()[t]);
  return text;
}

} // namespace

std::string mebibytes_text(std::int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  return mib < 9999.95 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024.0);
}

std::string percent_text(const std::optional<double>& percent) {
  return percent ? fmt::format("{:.2f} %", *percent) : "-";
}

std::string matrix_text(const accuracy_matrix& matrix) {
  if (matrix.rows.empty())
    return "";
  return "accuracy in percent\n" + (matrix.rows.size() > columns_max ? first_and_last(matrix) : full_table(matrix));
}

std::string report_text(const run_summary& summary, const accuracy_matrix& matrix, const std::string& directory) {
  std::string text = matrix_text(matrix);
  if (!text.empty())
    text += "\n\n";
  const auto& metrics = summary.metrics;
  auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<20}{}\n", name, value); };
  line("final accuracy",
       percent_text(metrics.final_accuracy) + ", mean over tasks " + percent_text(metrics.final_accuracy_task_mean));
  line("average incremental", percent_text(metrics.average_incremental_accuracy));
  line("forgetting", percent_text(metrics.forgetting) + " from the best accuracy before the last task, " +
                         percent_text(metrics.forgetting_including_last) + " from the best accuracy");
  line("traffic", mebibytes_text(summary.upload_bytes) + " up, " + mebibytes_text(summary.download_bytes) + " down");
  line("clients", fmt::format("{} client-rounds, {} late, {} dropped out", summary.client_rounds, summary.late_uploads,
                              summary.dropped));
  line("virtual time", elapsed_text(summary.virtual_seconds));
  line("wall time", fmt::format("{} (CPU {}), {:.1f} client-rounds per second", elapsed_text(summary.wall_seconds),
                                elapsed_text(summary.cpu_seconds), summary.client_rounds_per_second));
  line("run directory", directory);
  if (summary.status != "done")
    line("status", summary.error.empty() ? summary.status : summary.status + ": " + summary.error);
  if (summary.trace_digest)
    text += "trace digest " + *summary.trace_digest + "\n";
  return text + "run digest " + summary.run_digest;
}

} // namespace mneme
