#include "tools/cli/report_files.hpp"
#include "runtime/base/atomic_file.hpp"
#include "tools/cli/output_file.hpp"
#include "tools/cli/svg_to_png.hpp"
#include "tools/study/report_page.hpp"
#include "tools/study/tensorboard_events.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

/// Reads the run's files. Missing data are warnings, damaged data are errors.
expected<reported_run> with_files(stored_run run, std::vector<std::string>& warnings) {
  reported_run complete{.run = std::move(run)};
  const auto folder = complete.run.folder;
  if (complete.run.status == "damaged")
    return failed(folder.string(), complete.run.error);
  if (complete.run.status != "done")
    warnings.push_back(fmt::format("{}: the run is {}{}", folder.string(), complete.run.status,
                                   complete.run.error.empty() ? "" : ": " + complete.run.error));
  std::error_code none;
  if (fs::exists(folder / "metrics.jsonl", none)) {
    auto lines = read_evaluations(folder);
    if (!lines)
      return tl::unexpected(lines.error());
    complete.evaluations = std::move(*lines);
  } else {
    warnings.push_back(folder.string() + ": nothing has been evaluated yet");
  }
  if (fs::exists(folder / "timeline.jsonl", none)) {
    auto bins = read_timeline(folder);
    if (!bins)
      return tl::unexpected(bins.error());
    complete.course = std::move(*bins);
  }
  auto classes = read_class_accuracies(folder);
  if (!classes)
    return tl::unexpected(classes.error());
  complete.classes = std::move(*classes);
  auto held = read_client_classes(folder);
  if (!held)
    return tl::unexpected(held.error());
  complete.held = std::move(*held);
  const auto* const late = run_value(complete.run, "rounds.late");
  auto activity = read_activity(folder, !late || *late != "keep");
  if (!activity)
    return tl::unexpected(activity.error());
  complete.activity = std::move(*activity);
  return complete;
}

/// Writes each figure to its own file, in the requested formats.
expected<void> write_figures(const std::vector<report_figure>& figures, const report_files& to) {
  for (const auto& folder : {to.svg, to.png})
    if (!folder.empty())
      fs::create_directories(folder);
  if (!to.first_figure.empty() && !figures.empty())
    write_atomically(to.first_figure, figures.front().alone);
  for (const auto& figure : figures) {
    if (!to.svg.empty())
      write_atomically(to.svg / (figure.text.id + ".svg"), figure.alone);
    if (to.png.empty())
      continue;
    if (auto drawn = write_png(to.png / (figure.text.id + ".png"), figure.alone); !drawn)
      return drawn;
  }
  return {};
}

/// Returns an error for each path that should be a folder but is not. Missing folders are created later.
diagnostics folders_in_the_way(const report_files& to) {
  diagnostics errors;
  std::error_code none;
  for (const auto& [option, folder] :
       {std::pair("--svg", to.svg), {"--png", to.png}, {"--tensorboard", to.tensorboard}})
    if (fs::exists(folder, none) && !fs::is_directory(folder, none))
      errors.push_back({"", fmt::format("{} '{}' is not a folder; expected a folder, which is created if it is missing",
                                        option, folder.string())});
  return errors;
}

} // namespace

expected<void> write_report(std::vector<stored_run> runs, const report_files& to) {
  std::vector<std::string> warnings;
  std::vector<reported_run> reported;
  auto errors = folders_in_the_way(to);
  for (auto& run : runs)
    if (auto complete = with_files(std::move(run), warnings))
      reported.push_back(std::move(*complete));
    else
      append(errors, complete.error());
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  for (const auto& run : reported)
    if (!to.tensorboard.empty()) {
      const auto folder = to.tensorboard / run.run.folder.filename();
      fs::create_directories(folder);
      write_atomically(folder / tensorboard_file, tensorboard_events(run.evaluations));
    }
  const auto groups = group_runs(std::move(reported));
  const auto drawing = figures_of(groups);
  if (auto written = write_figures(drawing.figures, to); !written)
    return written;
  if (to.page.empty())
    return {};
  const auto page = report_page(groups, drawing, warnings);
  to.user_names_page ? write_output(to.page, page) : write_atomically(to.page, page);
  return {};
}

} // namespace mneme
