#include "runtime/base/printable.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/study_options.hpp"
#include "tools/study/comparison_text.hpp"
#include "tools/study/sweep_order.hpp"
#include <algorithm>
namespace mneme {
namespace {

const std::vector<std::pair<std::string, comparison_format>> formats{{"text", comparison_format::text},
                                                                     {"csv", comparison_format::csv},
                                                                     {"markdown", comparison_format::markdown},
                                                                     {"latex", comparison_format::latex}};

/// Scenario digests of these folders in the order of their sweeps.
std::vector<std::string> sweep_order_of(const std::vector<std::string>& folders) {
  std::vector<std::string> order;
  for (const auto& folder : folders)
    for (auto& digest : read_sweep_order(folder))
      order.push_back(std::move(digest));
  return order;
}

} // namespace

int compare_folders(const compare_arguments& arguments) {
  const auto format =
      std::find_if(formats.begin(), formats.end(), [&](const auto& known) { return known.first == arguments.format; });
  if (format == formats.end())
    return unknown_word("format", arguments.format, {"text", "csv", "markdown", "latex"});
  const auto runs = select_runs(arguments.folders, arguments.where);
  if (!runs)
    return print_errors(runs.error());
  const auto table = compare_runs(*runs, {.by = arguments.by,
                                          .columns = arguments.columns,
                                          .metrics = arguments.metrics,
                                          .baseline = arguments.baseline,
                                          .sweep_order = sweep_order_of(arguments.folders)});
  if (!table)
    return print_errors(table.error());
  print_warnings(table->warnings, warning_style::text);
  std::fputs(printable(comparison_text(*table, format->second)).c_str(), stdout);
  return exit_done;
}

} // namespace mneme
