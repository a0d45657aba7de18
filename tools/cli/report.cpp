#include "runtime/base/atomic_file.hpp"
#include "runtime/study/report_page.hpp"
#include "runtime/study/tensorboard_events.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/png_picture.hpp"
#include "tools/cli/study_options.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

/// Adds what the run's files hold; what they lack is a warning, what is damaged in them is an error.
expected<reported_run> with_files(stored_run run, std::vector<std::string>& warnings) {
  reported_run made{.run = std::move(run)};
  const auto folder = made.run.folder;
  if (made.run.status == "damaged")
    return failed(folder.string(), made.run.error);
  if (made.run.status != "done")
    warnings.push_back(fmt::format("{}: the run is {}{}", folder.string(), made.run.status,
                                   made.run.error.empty() ? "" : ": " + made.run.error));
  std::error_code none;
  if (std::filesystem::exists(folder / "metrics.jsonl", none)) {
    auto lines = read_evaluations(folder);
    if (!lines)
      return tl::unexpected(lines.error());
    made.evaluations = std::move(*lines);
  } else {
    warnings.push_back(folder.string() + ": nothing has been evaluated yet");
  }
  if (std::filesystem::exists(folder / "timeline.jsonl", none)) {
    auto bins = read_timeline(folder);
    if (!bins)
      return tl::unexpected(bins.error());
    made.course = std::move(*bins);
  }
  return made;
}

/// Each figure as a file of its own, in the forms that are asked for.
expected<void> write_figures(const std::vector<report_figure>& figures, const report_arguments& arguments) {
  for (const auto& folder : {arguments.svg, arguments.png})
    if (!folder.empty())
      std::filesystem::create_directories(folder);
  for (const auto& figure : figures) {
    if (!arguments.svg.empty())
      write_atomically(std::filesystem::path(arguments.svg) / (figure.text.id + ".svg"), figure.alone);
    if (arguments.png.empty())
      continue;
    if (auto drawn = write_png(std::filesystem::path(arguments.png) / (figure.text.id + ".png"), figure.alone); !drawn)
      return drawn;
  }
  return {};
}

} // namespace

int report_runs(const report_arguments& arguments) {
  auto runs = selected_runs(arguments.folders, arguments.where);
  if (!runs)
    return print_errors(runs.error());
  std::vector<std::string> warnings;
  std::vector<reported_run> reported;
  diagnostics wrong;
  for (auto& run : *runs)
    if (auto made = with_files(std::move(run), warnings))
      reported.push_back(std::move(*made));
    else
      append(wrong, made.error());
  if (!wrong.empty())
    return print_errors(wrong);
  for (const auto& made : reported)
    if (!arguments.tensorboard.empty()) {
      const auto folder = std::filesystem::path(arguments.tensorboard) / made.run.folder.filename();
      std::filesystem::create_directories(folder);
      write_atomically(folder / tensorboard_file, tensorboard_events(made.evaluations));
    }
  const auto groups = grouped_runs(std::move(reported));
  const auto figures = figures_of(groups);
  const std::filesystem::path file = arguments.file.empty() ? "report.html" : arguments.file;
  if (const auto written = write_figures(figures, arguments); !written)
    return print_errors(written.error());
  write_atomically(file, report_page(groups, figures, warnings));
  std::printf("%s\n", file.c_str());
  return exit_done;
}

} // namespace mneme
