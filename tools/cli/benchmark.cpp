// `mneme benchmark`: runs the scenarios of the benchmark, checks recorded rows, and writes the page of results.
#include "actors/run/reproduce_run.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include "tools/study/benchmark_page.hpp"
#include "tools/study/run_catalogue.hpp"
#include "tools/study/sweep_plan.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr const char* default_folder = "scenarios/benchmark";
constexpr const char* default_runs = "runs/benchmark";

fs::path folder_of(const benchmark_arguments& arguments) {
  return arguments.folder.empty() ? default_folder : arguments.folder;
}

std::string word(const benchmark_arguments& arguments, std::size_t place) {
  return place < arguments.words.size() ? arguments.words[place] : std::string();
}

/// Records the completed runs of a scenario. Returns false if a seed has none.
expected<bool> record(const benchmark_arguments& arguments, const benchmark_scenario& of, const run_catalogue& runs,
                      const std::vector<std::int64_t>& seeds) {
  const auto plan = plan_sweep({.scenarios = {of.file}, .seeds = seeds});
  if (!plan)
    return tl::unexpected(plan.error());
  std::vector<benchmark_row> rows;
  for (const auto& planned : plan->runs)
    for (const auto& run : runs.find({{.name = "version", .comparison = "=", .value = MNEME_VERSION},
                                      {.name = "status", .comparison = "=", .value = "done"}}))
      if (run.scenario_digest == planned.digest) {
        const auto whole = read_stored_run(run.folder); // the catalogue does not record the machine
        if (!whole)
          return tl::unexpected(whole.error());
        rows.push_back(benchmark_row_of(of, *whole));
        break;
      }
  if (const auto written = write_benchmark_rows(folder_of(arguments), of, rows); !written)
    return tl::unexpected(written.error());
  return rows.size() == plan->runs.size();
}

/// `mneme benchmark run [TRACK [METHOD]]`
int run_rows(const benchmark_arguments& arguments) {
  if (arguments.words.size() > 3)
    return bad_input("unexpected argument '" + arguments.words[3] + "'; expected mneme benchmark run [TRACK [METHOD]]");
  const auto scenarios = benchmark_scenarios(folder_of(arguments), word(arguments, 1), word(arguments, 2));
  const auto seeds = parse_seeds("--seeds", arguments.seeds.empty() ? "1-3" : arguments.seeds);
  if (!scenarios || !seeds)
    return print_errors(scenarios ? seeds.error() : scenarios.error());
  const auto first = plan_sweep({.scenarios = {scenarios->front().file}, .seeds = {seeds->front()}});
  if (!first)
    return print_errors(first.error());
  if (auto ready = reexec_with(first->runs.front().scenario.worker.arithmetic); !ready)
    return print_errors(ready.error());
  const std::string out = arguments.out.empty() ? default_runs : arguments.out;
  sweep_arguments sweep{.seeds = arguments.seeds.empty() ? "1-3" : arguments.seeds,
                        .out = out,
                        .jobs = arguments.jobs,
                        .quiet = arguments.quiet};
  for (const auto& scenario : *scenarios)
    sweep.scenarios.push_back(scenario.file.string());
  int code = sweep_scenarios(sweep);
  if (code == exit_bad_input)
    return code;
  const run_catalogue runs(out);
  for (const auto& scenario : *scenarios) {
    const auto complete = record(arguments, scenario, runs, *seeds);
    if (!complete)
      return print_errors(complete.error());
    if (!*complete && code == exit_done)
      code = exit_failed;
  }
  return code;
}

/// The row that "TRACK/METHOD/SEED" names.
expected<benchmark_row> row_named(const fs::path& folder, const std::string& name, benchmark_scenario& scenario) {
  const auto first = name.find('/'), last = name.rfind('/');
  const auto seeds = last == std::string::npos ? parse_seeds("", "") : parse_seeds("SEED", name.substr(last + 1));
  if (first == std::string::npos || first == last || !seeds || seeds->size() != 1)
    return failed("", fmt::format("'{}' is not a row; expected TRACK/METHOD/SEED, as in images/fedavg/1", name));
  const auto scenarios = benchmark_scenarios(folder, name.substr(0, first), name.substr(first + 1, last - first - 1));
  if (!scenarios)
    return tl::unexpected(scenarios.error());
  scenario = scenarios->front();
  const auto rows = read_benchmark_rows(folder, scenario);
  if (!rows)
    return tl::unexpected(rows.error());
  const auto row =
      std::find_if(rows->begin(), rows->end(), [&](const auto& one) { return one.seed == seeds->front(); });
  if (row == rows->end())
    return failed("", fmt::format("no row '{}' is recorded; record it with mneme benchmark run {} {} --seeds {}", name,
                                  scenario.track, scenario.method, seeds->front()));
  return *row;
}

/// `mneme benchmark check TRACK/METHOD/SEED`
int check_row(const benchmark_arguments& arguments) {
  if (arguments.words.size() != 2)
    return bad_input("expected one row: mneme benchmark check TRACK/METHOD/SEED, as in images/fedavg/1");
  benchmark_scenario scenario;
  const auto row = row_named(folder_of(arguments), arguments.words[1], scenario);
  if (!row)
    return print_errors(row.error());
  const auto plan = plan_sweep({.scenarios = {scenario.file}, .seeds = {row->seed}});
  if (!plan)
    return print_errors(plan.error());
  const auto& planned = plan->runs.front();
  if (row->digest_epoch != digest_epoch)
    return bad_input(
        fmt::format("the row was recorded by mneme {} with digest epoch {}, and this version computes epoch "
                    "{}; check it with that version",
                    row->version, row->digest_epoch, digest_epoch));
  if (planned.digest != row->scenario_digest)
    return print_errors(
        {{scenario.file.string(),
          fmt::format("the scenario was edited after its row was recorded: its digest was {} and is {}; "
                      "restore it, or record a new row",
                      row->scenario_digest, planned.digest)}});
  if (auto ready = reexec_with(planned.scenario.worker.arithmetic); !ready)
    return print_errors(ready.error());
  const temp_folder scratch;
  const auto ended =
      run_simulation(planned.scenario, {.out = scratch.path() / "run",
                                        .style = arguments.quiet ? progress_style::quiet : default_style(stdout),
                                        .interrupts = &watch_interrupts()});
  if (!ended)
    return print_errors(ended.error());
  if (ended->status != "done")
    return exit_code_of(*ended);
  const bool is_same = ended->run_digest == row->run_digest;
  fmt::print("{}: {}\n  recorded {}\n  computed {}\n", is_same ? "same" : "DIFFERENT", printable(arguments.words[1]),
             row->run_digest, ended->run_digest);
  return is_same ? exit_done : exit_failed;
}

/// `mneme benchmark page`: writes README.md and index.html.
int write_page(const benchmark_arguments& arguments) {
  if (arguments.words.size() > 1)
    return bad_input("unexpected argument '" + arguments.words[1] + "'; expected mneme benchmark page [--out DIR]");
  const auto scenarios = benchmark_scenarios(folder_of(arguments), "", "");
  if (!scenarios)
    return print_errors(scenarios.error());
  std::vector<benchmark_row> rows;
  for (const auto& scenario : *scenarios) {
    const auto some = read_benchmark_rows(folder_of(arguments), scenario);
    if (!some)
      return print_errors(some.error());
    rows.insert(rows.end(), some->begin(), some->end());
  }
  if (rows.empty())
    return bad_input("no row of the benchmark is recorded; record some with mneme benchmark run");
  const fs::path out = arguments.out.empty() ? "docs/benchmark" : arguments.out;
  fs::create_directories(out);
  const auto tables = benchmark_tables(rows);
  write_atomically(out / "README.md", benchmark_markdown(tables));
  write_atomically(out / "index.html", benchmark_html(tables));
  if (!arguments.quiet)
    fmt::print("{} rows: {}\n", rows.size(), printable((out / "README.md").string()));
  return exit_done;
}

} // namespace

int run_benchmark(const benchmark_arguments& arguments) {
  static const std::vector<std::string> actions{"run", "check", "page"};
  const auto action = word(arguments, 0);
  if (action == "run")
    return run_rows(arguments);
  if (action == "check")
    return check_row(arguments);
  if (action == "page")
    return write_page(arguments);
  return action.empty() ? bad_input("no action given; expected mneme benchmark run, check or page")
                        : unknown_word("action of mneme benchmark", action, actions);
}

} // namespace mneme
