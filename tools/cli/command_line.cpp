#include "tools/cli/command_line.hpp"
#include "runtime/base/printable.hpp"
#include "tools/cli/messages.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <poll.h>
namespace mneme {
namespace {

/// All commands with their options, and where the values go.
struct command_line {
  run_arguments run{};
  resume_arguments resume{};
  std::vector<std::string> to_validate{};
  std::string listed{}, topic{}; // topic: for the help of help only
  bool markdown = false, examined_as_json = false;
  CLI::App app{"mneme simulates federated continual learning.", "mneme"};
  CLI::App *run_command, *resume_command, *validate_command, *list_command, *doctor_command, *help_command;

  command_line() {
    app.set_version_flag("--version", "mneme " MNEME_VERSION);
    run_command = app.add_subcommand("run", "Run scenarios, one after another.");
    resume_command = app.add_subcommand("resume", "Go on with a run that was interrupted, killed or failed.");
    validate_command = app.add_subcommand("validate", "Check scenarios and their data without running them.");
    list_command = app.add_subcommand("list", "List what there is: " + joined_by_comma(listed_things()) + ".");
    doctor_command =
        app.add_subcommand("doctor", "Tell what this machine computes with, and check that it gives equal bits.");
    help_command =
        app.add_subcommand("help", "Explain a command, a section of a scenario, a strategy, a model or a key.");
    bind_run();
    bind_resume();
    validate_command->add_option("SCENARIO", to_validate, "Scenario files.")->type_name("...");
    list_command->add_option("WHAT", listed, "One of them; without it, all.")->type_name("");
    list_command->add_flag("--markdown", markdown, "Strategies, models or datasets as the table in docs/catalogue.md.");
    doctor_command->add_flag("--json", examined_as_json, "Print one JSON object.");
    help_command->add_option("TOPIC", topic, "What to explain; without it, an overview.")->type_name("");
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

private:
  void bind_run() {
    auto& to = *run_command;
    to.add_option("SCENARIO", run.scenarios, "Scenario files.")->type_name("...");
    to.add_option("--set", run.settings, "Override a key: a TOML value, or a bare string.")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    to.add_option("--seeds", run.seeds, "Run once with each seed, into DIR/s1, DIR/s2, ...")->type_name("1,2,3");
    to.add_option("--out", run.out, "Folder of the run, which must not exist; of several scenarios, DIR/NAME.")
        ->type_name("DIR");
    bind_running(to, run);
    to.add_flag("--trace", run.trace, "Write events.csv and partition.csv, too.");
  }
  void bind_resume() {
    resume_command->add_option("RUN_DIR", resume.folders, "Folder of the run, as mneme run made it.")->type_name("");
    bind_running(*resume_command, resume);
  }
  /// Options of a run that begins or goes on.
  template <class Arguments>
  static void bind_running(CLI::App& to, Arguments& into) {
    to.add_option("--threads", into.threads, "Threads, and workers where worker.count is 0; default: one per core.")
        ->type_name("N");
    auto* quiet = to.add_flag("--quiet", into.quiet, "Print nothing but failures.");
    to.add_flag("--json", into.json, "Print a JSON object per line.")->excludes(quiet);
  }
};

/// The first word that no command or option takes is an error, with the nearest that would be one.
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
  const bool top = command.get_parent() == nullptr;
  const auto meant = nearest(option, options);
  return bad_input("unknown option '" + option + "' of `mneme" + (top ? "" : " " + command.get_name()) + "`; " +
                   (meant.empty() ? "expected one of " + joined_by_comma(options) : "did you mean " + meant + "?"));
}

int dispatch(const command_line& line) {
  if (*line.run_command)
    return run_scenarios(line.run);
  if (*line.resume_command)
    return resume_run(line.resume);
  if (*line.validate_command)
    return validate_scenarios(line.to_validate);
  if (*line.list_command)
    return list_things(line.listed, line.markdown);
  if (*line.doctor_command)
    return examine(line.examined_as_json);
  return bad_input("no command given; expected one of " + joined_by_comma(line.command_names()));
}

/// `mneme help [TOPIC]`. Not parsed by CLI11, which would take a topic that is a command for that command.
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

int parse_and_dispatch(int count, const char* const* words) {
  command_line line;
  const auto commands = line.command_names();
  if (count > 1 && words[1][0] != '-' && std::find(commands.begin(), commands.end(), words[1]) == commands.end())
    return unknown_word("command", words[1], commands);
  if (count > 1 && std::string_view(words[1]) == "help" && (count == 2 || words[2][0] != '-'))
    return help(line, {words + 2, words + count});
  try {
    line.app.parse(count, words);
  } catch (const CLI::Success& asked) { // --help, --version
    return line.app.exit(asked) == 0 ? exit_done : exit_bad_input;
  } catch (const CLI::ParseError& error) {
    return bad_input(std::string(error.what()) + "; see `mneme help" + (count > 1 ? " " + std::string(words[1]) : "") +
                     "`");
  }
  for (const auto* command : line.app.get_subcommands())
    if (const auto extras = command->remaining(); !extras.empty())
      return complain_about_extras(*command, extras);
  if (const auto extras = line.app.remaining(); !extras.empty())
    return complain_about_extras(line.app, extras);
  return dispatch(line);
}

/// Nobody is told what a reader who has gone did not want to hear.
bool stdout_has_reader() {
  pollfd out{.fd = ::fileno(stdout), .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, 0) < 0 || (out.revents & POLLERR) == 0;
}

/// `code`, unless what was printed did not arrive.
int with_output_checked(int code) {
  std::cout.flush();
  errno = 0;
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost || code != exit_done || !stdout_has_reader())
    return code;
  std::fprintf(stderr, "error: not all of the output could be written%s%s\n", errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  return exit_failed;
}

} // namespace

int run_command_line(int count, const char* const* words) {
  try {
    return with_output_checked(parse_and_dispatch(count, words));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory; fewer rows, classes or clients need less\n");
    return exit_failed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", printable(error.what()).c_str());
    return exit_failed;
  }
}

} // namespace mneme
