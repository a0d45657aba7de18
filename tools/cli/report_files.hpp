/// report_files: the report of runs as files: a page, figures and TensorBoard's events.
#pragma once
#include "tools/study/stored_run.hpp"
namespace mneme {

/// Where the parts of a report go; what is empty is not written.
struct report_files {
  std::filesystem::path page{};
  bool user_names_page = false;         ///< It may be a pipe, a device, or a link, which is followed.
  std::filesystem::path first_figure{}; ///< Accuracy over rounds, as SVG.
  std::filesystem::path svg{}, png{};   ///< Folders for all figures.
  std::filesystem::path tensorboard{};  ///< Folder that holds one of events for each run.
};

/// Writes the report of the runs; what is not done is shown with a warning in the page. Fails, with nothing written,
/// where a run is damaged, and with no page where a figure cannot be drawn.
[[nodiscard]] expected<void> write_report(std::vector<stored_run> runs, const report_files& to);

} // namespace mneme
