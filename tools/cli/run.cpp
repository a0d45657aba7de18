#include "actors/run/simulation.hpp"
#include "runtime/base/atomic_file.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/cluster_options.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/cli/serving.hpp"
#include "tools/study/accuracy_plot.hpp"
#include "tools/study/stored_run.hpp"
#include "tools/study/sweep_request.hpp"
#include "tools/study/tensorboard_events.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

struct run_and_folder {
  mneme::scenario scenario{};
  std::filesystem::path out{};
};

/// Run directory: DIR for one scenario, DIR/NAME for each of several scenarios. Each of several seeds has a subfolder
/// s1, s2, and so on. Returns "" without --out.
std::filesystem::path folder_of(const run_arguments& arguments, const scenario& settings) {
  if (arguments.out.empty())
    return {};
  std::filesystem::path folder = arguments.out;
  if (arguments.scenarios.size() > 1)
    folder /= settings.name;
  return arguments.seeds.empty() ? folder : folder / fmt::format("s{}", settings.seed);
}

/// Validates the arguments. @param is_node true: this process computes for another one, which creates the run directory
diagnostics validate_run(const run_arguments& arguments, bool is_node) {
  diagnostics errors;
  if (arguments.scenarios.empty())
    errors.push_back(
        {"", "no scenario given; expected mneme run SCENARIO..., as in mneme run scenarios/quickstart.toml"});
  std::error_code ignored;
  if (!is_node && !arguments.out.empty() &&
      std::filesystem::exists(std::filesystem::symlink_status(arguments.out, ignored)) &&
      !run_directory::never_started(arguments.out))
    errors.push_back(
        {"", "--out '" + arguments.out + "' already exists, and a run never overwrites another; choose a new folder"});
  return errors;
}

/// Reads all scenarios with all seeds before the first run starts. Appends errors to `errors`.
std::vector<run_and_folder> planned_runs(const run_arguments& arguments, diagnostics& errors) {
  const auto settings = parse_settings(arguments.settings);
  const auto seeds = parse_seeds("--seeds", arguments.seeds);
  for (const auto& error : {settings ? diagnostics{} : settings.error(), seeds ? diagnostics{} : seeds.error()})
    errors.insert(errors.end(), error.begin(), error.end());
  std::vector<run_and_folder> runs;
  std::set<std::string> names;
  for (const auto& file : arguments.scenarios) {
    auto read = read_scenario(file, settings ? *settings : overrides{});
    if (!read) {
      append(errors, read.error());
      continue;
    }
    print_warnings(read->warnings, arguments.quiet  ? warning_style::none
                                   : arguments.json ? warning_style::json
                                                    : warning_style::text);
    if (!names.insert(read->value.name).second && !arguments.out.empty())
      errors.push_back({file, "a second scenario called '" + read->value.name +
                                  "' would use the same folder of --out; rename one of them"});
    if (!seeds || seeds->empty())
      runs.push_back({read->value, folder_of(arguments, read->value)});
    for (const auto seed : seeds ? *seeds : std::vector<std::int64_t>{}) {
      auto over = settings ? *settings : overrides{};
      over.emplace_back("seed", std::to_string(seed));
      auto again = read_scenario(file, over); // each run needs its own method object
      if (again)
        runs.push_back({again->value, folder_of(arguments, again->value)});
    }
  }
  return runs;
}

/// Checks that all runs use the same arithmetic, because a process has only one. Restarts the program for portable
/// arithmetic.
expected<void> arithmetic_of(const std::vector<run_and_folder>& runs) {
  for (const auto& run : runs)
    if (run.scenario.worker.arithmetic != runs.front().scenario.worker.arithmetic)
      return failed("worker.arithmetic", "the scenarios of one command must use the same arithmetic; run those with "
                                         "\"machine\" and those with \"portable\" separately");
  return runs.empty() ? expected<void>() : reexec_with(runs.front().scenario.worker.arithmetic);
}

/// Writes the evaluations so far for TensorBoard, if there are any.
void write_tensorboard(const std::filesystem::path& folder) {
  const auto evaluations = read_evaluations(folder);
  if (evaluations && !evaluations->empty())
    write_atomically(folder / tensorboard_file, tensorboard_events(*evaluations));
}

} // namespace

int run_scenarios(const run_arguments& arguments) {
  const auto threads = threads_option(arguments.threads);
  auto plan = threads ? plan_cluster(arguments.on, *threads) : tl::unexpected(threads.error());
  auto errors = validate_run(arguments, plan && plan->node);
  if (!plan)
    append(errors, plan.error());
  diagnostics errors_of_scenarios;
  const auto runs = planned_runs(arguments, errors_of_scenarios);
  append(errors, errors_of_scenarios);
  const auto fail = [&plan](const diagnostics& why) {
    const auto code = print_errors(why);
    if (plan)
      end_ranks(plan->accept, end_for(why)); // reported to other ranks, because they may not find these errors
    return code;
  };
  if (!errors_of_scenarios.empty()) // all ranks find these errors
    return print_errors(errors);
  if (!errors.empty())
    return fail(errors);
  if (auto ready = arithmetic_of(runs); !ready)
    return fail(ready.error());
  const auto metrics = metrics_option(arguments.metrics, plan->node ? plan->node->local_rank : std::nullopt);
  if (!metrics)
    return fail(metrics.error());
  if (plan->node)
    return run_node(*plan->node, *metrics, stderr);
  const auto shown = serving_option(arguments.serve, arguments.serve_token, *metrics);
  if (!shown)
    return fail(shown.error());
  const auto& interrupts = watch_interrupts();
  run_options options{.threads = plan->threads,
                      .style = style_option(arguments.quiet, arguments.json),
                      .trace = arguments.trace,
                      .dumped_round = arguments.dumped_round,
                      .interrupts = &interrupts,
                      .accept = plan->accept,
                      .live = shown->view,
                      .measures_actors = shown->metrics != nullptr,
                      .draw_accuracy = accuracy_plot_svg};
  int worst = exit_done; // exit code of the first failed run; later runs still start
  for (const auto& run : runs) {
    options.out = run.out;
    options.accept.nodes_stay = &run != &runs.back();
    const auto ended = run_simulation(run.scenario, options);
    if (ended && arguments.tensorboard)
      write_tensorboard(ended->folder);
    if (ended)
      warn_of_absent_round(*ended, arguments.dumped_round);
    const int code = ended ? exit_code_of(*ended) : print_errors(ended.error());
    worst = worst == exit_done ? code : worst;
    if (code == exit_interrupted || interrupts.load() > 0)
      return exit_interrupted;
  }
  return worst;
}

} // namespace mneme
