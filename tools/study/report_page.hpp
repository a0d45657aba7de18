/// report_page: runs as one HTML file that needs nothing but a browser.
#pragma once
#include "tools/study/report_figures.hpp"
namespace mneme {

/// How far a run is that still goes on, or has just ended.
struct run_progress {
  std::string status{};             ///< "running", or how it ended.
  std::int64_t task = 0, tasks = 0; ///< From 1; totals are 0 while they are not known.
  std::int64_t round = 0, rounds = 0;
  std::optional<double> accuracy{}; ///< On all tasks seen, in percent.
  double virtual_s = 0.0;
  double elapsed_s = 0.0;         ///< Real time since this process began the run.
  std::optional<double> left_s{}; ///< Real time to its end, by the pace so far.
};

/// Runs with their figures, a table of what they reached, a comparison, their configuration, digests and warnings. The
/// page loads nothing, follows the reader's choice of dark or light, and can be used with the keyboard alone.
/// @param warnings what is to be known of the runs, a line each
/// @param live where given, the page is served beside "events" (live_server.hpp), and shows what that sends
[[nodiscard]] std::string report_page(const std::vector<run_group>& groups, const report_drawing& drawing,
                                      const std::vector<std::string>& warnings,
                                      const std::optional<run_progress>& live = {});

} // namespace mneme
