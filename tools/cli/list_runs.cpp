#include "actors/run/report.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/study_options.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

std::string percent_of(const stored_run& run, const std::string& figure) {
  const auto found = run.figures.find(figure);
  return found != run.figures.end() ? percent_text(found->second) : "-";
}

} // namespace

int list_runs(const list_arguments& arguments) {
  const std::filesystem::path folder = arguments.folder.empty() ? "runs" : arguments.folder;
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none))
    return bad_input("'" + folder.string() +
                     "' is not a folder; expected one that contains runs, as in mneme list runs --in runs");
  const run_catalogue catalogue(folder);
  print_warnings(catalogue.damage(), warning_style::text);
  const auto filters = where_option(arguments.where, catalogue);
  if (!filters)
    return print_errors(filters.error());
  std::size_t width = 3;
  const auto runs = catalogue.find(*filters);
  for (const auto& run : runs)
    width = std::max(width, run.folder.string().size());
  const auto print = [&](const std::string& text) { std::printf("%s\n", printable(text).c_str()); };
  print(fmt::format("{:<{}}  {:<11}  {:<12}  {:<14}  {:>4}  {:>8}  {:>10}", "run", width, "status", "strategy",
                    "dataset", "seed", "accuracy", "forgetting"));
  for (const auto& run : runs)
    print(fmt::format("{:<{}}  {:<11}  {:<12}  {:<14}  {:>4}  {:>8}  {:>10}", run.folder.string(), width, run.status,
                      run.strategy, run.dataset, run.seed, percent_of(run, "final_accuracy"),
                      percent_of(run, "forgetting")));
  for (const auto& run : runs)
    if (!run.error.empty())
      print(fmt::format("{}: {}", run.folder.string(), run.error));
  return exit_done;
}

} // namespace mneme
