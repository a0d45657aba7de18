/// report_page: self-contained HTML page about runs.
#pragma once
#include "tools/study/report_figures.hpp"
namespace mneme {

/// Progress of a run that is running or has just ended.
struct run_progress {
  std::string status{};             ///< "running", or the status with which the run ended.
  std::int64_t task = 0, tasks = 0; ///< Counted from 1; a total is 0 while it is unknown.
  std::int64_t round = 0, rounds = 0;
  std::optional<double> accuracy{}; ///< Accuracy on all tasks seen, in percent.
  double virtual_s = 0.0;
  double elapsed_s = 0.0;         ///< Wall-clock time since this process started the run.
  std::optional<double> left_s{}; ///< Estimated wall-clock time to the end.
};

/// Makes a page with figures, a table of results, a comparison, configurations, digests and warnings. The page loads no
/// other file, follows the preference for dark or light, and can be used with the keyboard alone.
/// @param warnings one line each
/// @param live if set, the page updates itself from the server's "events" (tools/live/live_pages.cpp)
[[nodiscard]] std::string report_page(const std::vector<run_group>& groups, const report_drawing& drawing,
                                      const std::vector<std::string>& warnings,
                                      const std::optional<run_progress>& live = {});

} // namespace mneme
