/// report_files: writes the report of runs: page, figures and TensorBoard events.
#pragma once
#include "tools/study/stored_run.hpp"
namespace mneme {

/// Destinations of the parts of a report. A part with an empty destination is not written.
struct report_files {
  std::filesystem::path page{};
  bool user_names_page = false;         ///< true: the page may also be a pipe, a device, or a link.
  std::filesystem::path first_figure{}; ///< Accuracy over rounds, as SVG.
  std::filesystem::path svg{}, png{};   ///< Folders for all figures.
  std::filesystem::path tensorboard{};  ///< Folder that gets a subfolder for each run.
};

/// Writes the report. Runs that are not done are included with a warning. Fails before it writes anything if a run is
/// damaged, and without writing the page if a figure cannot be drawn.
[[nodiscard]] expected<void> write_report(std::vector<stored_run> runs, const report_files& to);

} // namespace mneme
