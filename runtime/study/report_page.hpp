/// report_page: runs as one HTML file that needs nothing but a browser.
#pragma once
#include "runtime/study/report_figures.hpp"
namespace mneme {

enum class page_kind : std::uint8_t {
  file, ///< Stands for itself.
  live, ///< Is served beside "events" (live_server.hpp), and shows what is new when that says so.
};

/// Runs with their figures, a table of what they reached, their configuration, digests and warnings. The page loads
/// nothing, follows the reader's choice of dark or light, and can be used with the keyboard alone.
/// @param warnings what is to be known of the runs, a line each
[[nodiscard]] std::string report_page(const std::vector<run_group>& groups, const std::vector<report_figure>& figures,
                                      const std::vector<std::string>& warnings, page_kind kind = page_kind::file);

} // namespace mneme
