#include "tools/cli/command_line.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "tools/cli/checked_output.hpp"
#include "tools/cli/messages.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <map>
namespace mneme {
namespace {

/// All commands with their options, bound to members.
struct command_line {
  run_arguments run{};
  resume_arguments resume{};
  verify_arguments verify{};
  diff_arguments diff{};
  serve_arguments serve{};
  sweep_arguments sweep{};
  validate_arguments validate{};
  calibrate_arguments calibrate{};
  compare_arguments compare{};
  report_arguments report{};
  new_arguments new_args{};
  list_arguments list{};
  std::string shell{};
  std::string topic{}; // only for the help text of `help`
  doctor_arguments doctor{};
  benchmark_arguments benchmark{};
  CLI::App app{"mneme simulates federated continual learning.", "mneme"};
  CLI::App *run_command, *resume_command, *validate_command, *list_command, *doctor_command, *help_command;
  CLI::App *node_command, *calibrate_command, *verify_command, *diff_command, *benchmark_command;
  CLI::App *sweep_command, *compare_command, *report_command, *new_command, *schema_command, *completion_command;

  command_line() {
    app.set_version_flag("--version", "mneme " MNEME_VERSION);
    app.require_subcommand(0, 1); // "run" is not kept as an argument, because a folder may be named "run"
    run_command = app.add_subcommand("run", "Run scenarios, one after another.");
    resume_command = app.add_subcommand("resume", "Resume a run that was interrupted, killed or failed.");
    verify_command = app.add_subcommand("verify", "Reproduce a run from its directory and compare the digests.");
    diff_command =
        app.add_subcommand("diff", "Find the first difference of two runs, and list differences of their settings.");
    node_command = app.add_subcommand("node", "Join a run of another process and compute clients for it.");
    sweep_command = app.add_subcommand("sweep", "Run a grid of scenarios, keys and seeds; completed runs are kept.");
    compare_command =
        app.add_subcommand("compare", "Print tables of runs: means over seeds, intervals, differences, ranks.");
    report_command = app.add_subcommand("report", "Write an HTML page with tables and figures of runs.");
    benchmark_command =
        app.add_subcommand("benchmark", "Run the scenarios of the benchmark, check a recorded row, or write its page.");
    validate_command = app.add_subcommand("validate", "Check scenarios and their data without running them.");
    calibrate_command = app.add_subcommand(
        "calibrate", "Measure the training speed of this machine for a scenario's net, and write a device profile.");
    list_command = app.add_subcommand("list", "List one of: " + join_by_comma(listed_things()) + ".");
    new_command = app.add_subcommand("new", "Write a commented scenario of a method on a data set.");
    schema_command = app.add_subcommand("schema", "Print a JSON schema of scenarios, for editors.");
    completion_command = app.add_subcommand("completion", "Print a completion script for a shell.");
    doctor_command =
        app.add_subcommand("doctor", "Describe this machine and check that it computes equal bits; or describe data.");
    help_command =
        app.add_subcommand("help", "Explain a command, a section of a scenario, a strategy, a model or a key.");
    bind_run();
    bind_resume();
    bind_verify();
    bind_diff();
    bind_node();
    bind_sweep();
    bind_compare();
    bind_list();
    bind_report();
    bind_new();
    completion_command->add_option("SHELL", shell, "bash, zsh or fish.")->type_name("");
    bind_validate();
    bind_calibrate();
    bind_doctor();
    bind_benchmark();
    help_command->add_option("TOPIC", topic, "What to explain; default: an overview.")->type_name("");
    for (auto* command : app.get_subcommands({}))
      command->allow_extras();
    app.allow_extras();
  }

  [[nodiscard]] std::vector<std::string> command_names() const {
    std::vector<std::string> names;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return names;
  }

  /// Commands and their options, for shell completion.
  [[nodiscard]] std::vector<completed_command> completed() const {
    std::vector<completed_command> commands;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      commands.push_back({.name = command->get_name(), .summary = command->get_description()});
      for (const auto* option : command->get_options())
        for (const auto& name : option->get_lnames())
          commands.back().options.push_back("--" + name);
    }
    return commands;
  }

private:
  void bind_run() {
    auto& to = *run_command;
    to.add_option("SCENARIO", run.scenarios, "Scenario files.")->type_name("...");
    to.add_option("--set", run.settings, "Override a key: a TOML value, or a bare string.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    to.add_option("--seeds", run.seeds, "Run once with each seed, into DIR/s1, DIR/s2, ...")->type_name("1,2,3");
    to.add_option("--out", run.out, "Folder of the run, which must not exist; with several scenarios DIR/NAME.")
        ->type_name("DIR");
    bind_running(to, run);
    to.add_flag("--trace", run.trace, "Also write events.csv, deliveries.csv and partition.csv.");
    bind_values(to, run.dumped_round);
    to.add_flag("--tensorboard", run.tensorboard, "Also write an event file for TensorBoard.");
  }
  void bind_resume() {
    resume_command->add_option("RUN_DIR", resume.folders, "Folder of the run, written by mneme run.")->type_name("");
    bind_running(*resume_command, resume);
  }
  void bind_verify() {
    auto& to = *verify_command;
    to.add_option("RUN_DIR", verify.folders, "Folder of the run, written by mneme run.")->type_name("");
    to.add_option("--threads", verify.threads, "Threads, and workers if worker.count is 0; default: one per core.")
        ->type_name("N");
    to.add_option("--digest", verify.digest,
                  "Expected run digest or its first digits, for example from a paper; default: the digest of the run.")
        ->type_name("HEX");
    to.add_option("--keep", verify.keep, "Keep the reproduced run in this new folder.")->type_name("DIR");
    to.add_flag("--trace", verify.trace, "As in mneme run; default: as in the recorded run.");
    bind_values(to, verify.dumped_round);
    to.add_flag("--quiet", verify.quiet, "Print differences only.");
  }
  void bind_diff() {
    auto& to = *diff_command;
    to.add_option("RUNS", diff.folders, "Folders of the two runs.")->type_name("");
    auto* again = to.add_flag("--again", diff.again,
                              "If the folders do not show which element differs, reproduce both runs on this machine.");
    to.add_option("--threads", diff.threads, "Threads of the reproduced runs; default: one per core.")
        ->type_name("N")
        ->needs(again);
  }
  static void bind_values(CLI::App& to, std::int64_t& into) {
    to.add_option("--dump-round", into,
                  "Write the uploads of this round, and the model after it, to values/round_N.safetensors.")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  }
  void bind_node() {
    auto& to = *node_command;
    to.add_option("--join", serve.join, "Address at which a run accepts nodes; retried until the run has started.")
        ->type_name("HOST:PORT");
    to.add_option("--threads", serve.threads, "Workers; default: one per core.")->type_name("N");
    to.add_option("--arithmetic", serve.arithmetic,
                  "Arithmetic of the runs to join (their worker.arithmetic): machine or portable.")
        ->type_name("WORD")
        ->check(CLI::IsMember({"machine", "portable"}));
    to.add_flag("--native-code", serve.native_code,
                "Load modules from runs even if this machine does not support the sandbox for their trial.");
    to.add_option("--idle-timeout", serve.idle_timeout,
                  "End after this time without a run; 0 s: never. Default: 10 min.")
        ->type_name("DURATION");
    to.add_option("--grace", serve.grace,
                  "At SIGTERM or SIGINT: time to finish batches and return shards. Default: 20 s.")
        ->type_name("DURATION");
    to.add_option("--make-keys", serve.keys, "Write certificates of an authority and of a node into a new folder.")
        ->type_name("DIR");
    bind_metrics(to, serve.metrics);
    bind_trust(to, serve.trust);
  }
  static void bind_metrics(CLI::App& to, metrics_arguments& into) {
    to.add_option("--metrics", into.address,
                  "Serve /metrics (Prometheus), /healthz and /readyz at this address; port 0: any free port.")
        ->type_name("HOST:PORT");
    to.add_option("--metrics-token", into.token_file,
                  "File with the token that /metrics needs off the loopback; default: $MNEME_METRICS_TOKEN.")
        ->type_name("FILE");
  }
  static void bind_trust(CLI::App& to, trust_arguments& into) {
    to.add_option("--secret", into.secret,
                  "TLS: file with the job's secret, readable only by its owner; default: $MNEME_SECRET.")
        ->type_name("FILE");
    to.add_option("--cert", into.certificate, "TLS: certificate of this process (PEM).")->type_name("FILE");
    to.add_option("--key", into.key, "TLS: its private key (PEM).")->type_name("FILE");
    to.add_option("--ca", into.authority, "TLS: certificate of the authority that signs all peers (PEM).")
        ->type_name("FILE");
  }
  void bind_sweep() {
    auto& to = *sweep_command;
    to.add_option("SCENARIO", sweep.scenarios, "Scenario files, or one file with a [sweep] table.")->type_name("...");
    to.add_option("--over", sweep.over, "A key and its values, one per point.")
        ->type_name("KEY=V1,V2")
        ->allow_extra_args(false);
    to.add_option("--set", sweep.settings, "Override a key in all runs.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    to.add_option("--seeds", sweep.seeds, "Run each point once with each seed.")->type_name("1-5");
    to.add_option("--out", sweep.out, "Folder for the runs and their catalogue; default: runs.")->type_name("DIR");
    to.add_option("--jobs", sweep.jobs, "Runs at a time; default: one per core.")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    to.add_option("--threads", sweep.threads, "Threads of each run; default: the cores divided by --jobs.")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    to.add_flag("--dry-run", sweep.dry, "Check all points, and print the planned action for each run.");
    to.add_option("--slurm", sweep.slurm, "Only write a script for sbatch: a job array of the pending runs.")
        ->type_name("FILE");
    auto* quiet = to.add_flag("--quiet", sweep.quiet, "Print failures only.");
    to.add_flag("--json", sweep.json, "Print a JSON object per line.")->excludes(quiet);
  }
  void bind_validate() {
    auto& to = *validate_command;
    to.add_option("SCENARIO", validate.scenarios, "Scenario files.")->type_name("...");
    to.add_option("--set", validate.settings, "Override a key: a TOML value, or a bare string.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    auto* cost = to.add_flag(
        "--cost", validate.cost,
        "Estimate FLOPs, bytes, memory and seconds of the run without computing it: simulates virtual time with the "
        "sizes of jobs and messages, counts FLOPs on one row, and measures this machine's rate of products briefly.");
    to.add_flag("--json", validate.json, "Print the costs of each scenario as a JSON object.")->needs(cost);
  }
  void bind_calibrate() {
    auto& to = *calibrate_command;
    to.add_option("SCENARIO", calibrate.scenarios, "A scenario file: its net, batch, optimizer and rows.")
        ->type_name("");
    to.add_option("--set", calibrate.settings, "Override a key: a TOML value, or a bare string.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    to.add_option("-o,--out", calibrate.file, "File for the profile; default: stdout.")->type_name("FILE");
    to.add_option("--seconds", calibrate.seconds, "Approximate duration of the measurement in seconds; default: 6.")
        ->type_name("S")
        ->check(CLI::Range(0.1, 3600.0));
  }
  void bind_compare() {
    auto& to = *compare_command;
    to.add_option("DIR", compare.folders, "Folders of runs, or folders that contain runs.")->type_name("...");
    to.add_option("--by", compare.by, "Scenario keys that define rows; default: the keys in which the runs differ.")
        ->type_name("KEY,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    to.add_option("--columns", compare.columns, "A scenario key whose values define columns.")->type_name("KEY");
    to.add_option("--metric", compare.metrics,
                  "Names of summary.json, time_to_accuracy.70 (virtual seconds to 70 %) or task_2 (its last accuracy).")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    to.add_option("--baseline", compare.baseline,
                  "The row to compare others with; default: the first point of the sweep, otherwise the first row.")
        ->type_name("LABEL,...");
    bind_where(to, compare.where);
    to.add_option("--format", compare.format, "text, csv, markdown or latex.")->type_name("FORMAT");
  }
  void bind_report() {
    auto& to = *report_command;
    to.add_option("DIR", report.folders, "Folders of runs, or folders that contain runs.")->type_name("...");
    to.add_option("-o,--out", report.file, "File for the page; default: report.html.")->type_name("FILE");
    to.add_option("--svg", report.svg, "Also write each figure as an SVG file.")->type_name("DIR");
    to.add_option("--png", report.png, "Also write each figure as a PNG file, two pixels per unit.")->type_name("DIR");
    to.add_option("--tensorboard", report.tensorboard, "Also write event files for TensorBoard, one folder per run.")
        ->type_name("DIR");
    bind_where(to, report.where);
  }
  void bind_new() {
    new_command
        ->add_option("NAMES", new_args.names,
                     "A method and a data set (see mneme list strategies and datasets), or a path to your own data.")
        ->type_name("");
    new_command->add_option("--set", new_args.settings, "Set a key: a TOML value, or a bare string.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    new_command->add_option("-o,--out", new_args.file, "Output file; default: stdout.")->type_name("FILE");
  }
  void bind_doctor() {
    auto& to = *doctor_command;
    to.add_flag("--json", doctor.json, "Print one JSON object.");
    auto* data =
        to.add_option("DATA", doctor.data, "Describe image folders, arrays, tables or scenarios' data instead.");
    to.add_option("--partition", doctor.partition, "Show how many rows of each class each client holds.")
        ->type_name("SCENARIO")
        ->excludes(data->type_name("..."));
    to.add_option("--set", doctor.settings, "Override a key of [data]; with --partition any key.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
  }
  void bind_list() {
    auto& to = *list_command;
    to.add_option("WHAT", list.listed, "What to list; default: all except runs.")->type_name("");
    to.add_flag("--markdown", list.markdown,
                "Print strategies, models or datasets as the Markdown table of docs/catalogue.md.");
    to.add_option("--in", list.folder, "runs: folder that contains them; default: runs.")->type_name("DIR");
    bind_where(to, list.where);
  }
  void bind_benchmark() {
    auto& to = *benchmark_command;
    to.add_option("ACTION", benchmark.words, "run [TRACK [METHOD]], check TRACK/METHOD/SEED, or page.")
        ->type_name("...");
    to.add_option("--folder", benchmark.folder, "Folder of the benchmark; default: scenarios/benchmark.")
        ->type_name("DIR");
    to.add_option("--seeds", benchmark.seeds, "run: seeds of each scenario; default: 1-3.")->type_name("1-3");
    to.add_option("--out", benchmark.out, "Folder of the runs (runs/benchmark) or of the page (docs/benchmark).")
        ->type_name("DIR");
    to.add_option("--jobs", benchmark.jobs, "run: number of concurrent runs; default: one per core.")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
    to.add_flag("--quiet", benchmark.quiet, "Print failures only.");
  }
  static void bind_where(CLI::App& to, std::vector<std::string>& into) {
    to.add_option("--where", into, "Only runs that satisfy a condition, as in rounds.cohort=5 or 'final_accuracy>=70'.")
        ->type_name("FILTER")
        ->allow_extra_args(false);
  }
  /// Options of commands that start or resume a run.
  template <class Arguments>
  static void bind_running(CLI::App& to, Arguments& into) {
    to.add_option("--threads", into.threads, "Threads, and workers if worker.count is 0; default: one per core.")
        ->type_name("N");
    to.add_option("--serve", into.serve,
                  "Serve the live report at http://127.0.0.1:PORT/ during the run; 0: any free port.")
        ->type_name("PORT");
    to.add_option("--serve-token", into.serve_token, "Also allow access from other machines with this token.")
        ->type_name("TOKEN");
    bind_metrics(to, into.metrics);
    auto* quiet = to.add_flag("--quiet", into.quiet, "Print failures only.");
    to.add_flag("--json", into.json, "Print a JSON object per line.")->excludes(quiet);
    to.add_flag(
        "--distributed", into.on.distributed,
        "Started once per rank by torchrun, srun, mpirun or Kubernetes: rank 0 runs, the others compute for it.");
    to.add_option("--accept", into.on.accept, "Accept nodes (mneme node --join) at this address.")
        ->type_name("HOST:PORT");
    to.add_option("--workers-min", into.on.workers_min,
                  "Begin when nodes with this many workers have joined; default: at once, or with all ranks.")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20));
    bind_trust(to, into.on.trust);
  }
};

/// Removed options, each with a message that names the replacement.
const std::map<std::string, std::string> removed_options{
    {"--nodes", "nodes connect to the run; start it with --accept HOST:PORT, and each node with mneme node --join "
                "HOST:PORT"},
    {"--listen", "nodes connect to the run; start the run with mneme run X.toml --accept HOST:PORT, and the node with "
                 "mneme node --join HOST:PORT"},
    {"--status", "nodes accept no connections; start the node with --metrics 127.0.0.1:PORT and read "
                 "http://127.0.0.1:PORT/metrics"},
    {"--metrics-port", "write --metrics 127.0.0.1:PORT"}};

/// Reports the first unknown argument with the nearest valid one. Returns the exit code.
int complain_about_extras(const CLI::App& command, const std::vector<std::string>& extras) {
  auto wrong =
      std::find_if(extras.begin(), extras.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (wrong == extras.end())
    return bad_input("unexpected argument '" + extras.front() + "'; see `mneme help " + command.get_name() + "`");
  std::vector<std::string> options;
  for (const auto* option : command.get_options())
    for (const auto& name : option->get_lnames())
      options.push_back("--" + name);
  const auto option = wrong->substr(0, wrong->find('='));
  if (const auto successor = removed_options.find(option); successor != removed_options.end())
    return bad_input("option '" + option + "' was removed: " + successor->second);
  const bool top = command.get_parent() == nullptr;
  const auto meant = closest_match(option, options);
  return bad_input("unknown option '" + option + "' of `mneme" + (top ? "" : " " + command.get_name()) + "`; " +
                   (meant.empty() ? "expected one of " + join_by_comma(options) : "did you mean " + meant + "?"));
}

/// Returns an error for each empty argument, because files, folders, keys and addresses cannot be empty.
diagnostics empty_words(const CLI::App& command) {
  diagnostics empty;
  for (const auto* option : command.get_options())
    for (const auto& word : option->results())
      if (word.empty()) {
        const auto name = option->get_positional() ? option->get_name(true) : option->get_name();
        empty.push_back(
            {"", fmt::format("{} of `mneme {}` is empty; give a value, or omit it", name, command.get_name())});
      }
  return empty;
}

int dispatch(const command_line& line) {
  if (*line.run_command)
    return run_scenarios(line.run);
  if (*line.sweep_command)
    return sweep_scenarios(line.sweep);
  if (*line.node_command)
    return serve_nodes(line.serve);
  if (*line.resume_command)
    return resume_run(line.resume);
  if (*line.verify_command)
    return verify_run(line.verify);
  if (*line.diff_command)
    return diff_runs(line.diff);
  if (*line.validate_command)
    return validate_scenarios(line.validate);
  if (*line.calibrate_command)
    return calibrate_scenario(line.calibrate);
  if (*line.benchmark_command)
    return run_benchmark(line.benchmark);
  if (*line.list_command)
    return list_things(line.list);
  if (*line.compare_command)
    return compare_folders(line.compare);
  if (*line.report_command)
    return report_runs(line.report);
  if (*line.new_command)
    return new_scenario(line.new_args);
  if (*line.completion_command)
    return print_completion(line.shell, line.completed());
  if (*line.schema_command)
    return print_schema();
  if (*line.doctor_command)
    return doctor(line.doctor);
  return bad_input("no command given; expected one of " + join_by_comma(line.command_names()));
}

/// Runs `mneme help [TOPIC]`. CLI11 does not parse TOPIC: if it is the name of a command, CLI11 would run the command.
int help(const command_line& line, const std::vector<std::string>& topics) {
  if (topics.size() > 1)
    return bad_input("unexpected argument '" + topics[1] + "'; expected mneme help TOPIC");
  const auto commands = line.command_names();
  if (topics.empty())
    std::fputs(line.app.help().c_str(), stdout);
  else if (std::find(commands.begin(), commands.end(), topics[0]) != commands.end()) {
    std::fputs(line.app.get_subcommand(topics[0])->help("mneme").c_str(), stdout);
    return exit_done;
  }
  return explain(topics.empty() ? "" : topics[0], commands);
}

int unknown_command(const std::string& word, const std::vector<std::string>& commands) {
  if (word.ends_with(".toml"))
    return bad_input("unknown command '" + word + "'; did you mean mneme run " + word + "?");
  return word == "version" ? bad_input("unknown command 'version'; did you mean mneme --version?")
                           : unknown_word("command", word, commands);
}

/// The command line with renamed options under their new names. Prints a warning for each.
std::vector<std::string> current_options(int count, const char* const* words) {
  std::vector<std::string> current(words, words + count);
  for (std::size_t i = 2; i < current.size() && current[i] != "--"; ++i)
    for (const auto& option : renamed_options()) {
      const auto name = std::string_view(current[i]).substr(0, current[i].find('='));
      if (current[1] != option.command || name != option.old_name)
        continue;
      std::fprintf(stderr, "warning: %s\n", deprecation_text(option.old_name, option.name).c_str());
      current[i].replace(0, name.size(), option.name);
    }
  return current;
}

int parse_and_dispatch(int count, const char* const* words) {
  command_line line;
  const auto commands = line.command_names();
  if (count > 1 && words[1][0] != '-' && std::find(commands.begin(), commands.end(), words[1]) == commands.end())
    return unknown_command(words[1], commands);
  if (count > 1 && std::string_view(words[1]) == "help" && (count == 2 || words[2][0] != '-'))
    return help(line, {words + 2, words + count});
  try {
    auto options = current_options(count, words);
    if (!options.empty())
      options.erase(options.begin());             // the program
    std::reverse(options.begin(), options.end()); // CLI11 expects the reverse order
    line.app.parse(std::move(options));
  } catch (const CLI::Success& asked) { // --help, --version
    return line.app.exit(asked) == 0 ? exit_done : exit_bad_input;
  } catch (const CLI::ParseError& error) {
    return bad_input(std::string(error.what()) + "; see `mneme help" + (count > 1 ? " " + std::string(words[1]) : "") +
                     "`");
  }
  for (const auto* command : line.app.get_subcommands()) {
    auto extras = command->remaining();
    std::erase(extras, "--"); // words after "--" are not options
    if (!extras.empty())
      return complain_about_extras(*command, extras);
  }
  if (const auto extras = line.app.remaining(); !extras.empty())
    return complain_about_extras(line.app, extras);
  for (const auto* command : line.app.get_subcommands())
    if (const auto empty = empty_words(*command); !empty.empty())
      return print_errors(empty);
  return dispatch(line);
}

} // namespace

int run_command_line(int count, const char* const* words) {
  try {
    return with_output_checked(parse_and_dispatch(count, words));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory; use fewer rows, classes or clients\n");
    return exit_failed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", printable_message(error.what()).c_str());
    return exit_failed;
  }
}

} // namespace mneme
