#include "runtime/base/printable.hpp"
#include "runtime/options/unit_text.hpp"
#include "tools/cli/arithmetic.hpp"
#include "tools/cli/cluster_options.hpp"
#include "tools/cli/interrupts.hpp"
#include "tools/cli/messages.hpp"
#include "tools/cli/run_options.hpp"
#include <algorithm>
#include <cstdlib>
namespace mneme {
namespace {

/// Prints one line of at most 2,000 printable characters, so that peers can neither forge log lines nor flood the log.
void print_line(std::FILE* log, const std::string& text) {
  constexpr std::size_t bytes_max = 2000;
  auto line = printable(text.substr(0, bytes_max));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::fprintf(log, "node: %s\n", line.c_str());
  std::fflush(log);
}

expected<std::chrono::nanoseconds> duration_option(const char* name, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration)
    return failed(name,
                  "'" + text + "' is not a duration; expected a number with a unit, as in \"30 s\" or \"10 min\"");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(*duration);
}

int join(const serve_arguments& arguments) {
  const auto address = parse_address(arguments.join);
  const auto threads = threads_option(arguments.threads);
  const auto metrics = metrics_option(arguments.metrics);
  const auto idle_timeout = duration_option("--idle-timeout", arguments.idle_timeout);
  const auto grace = duration_option("--grace", arguments.grace);
  auto trust = trust_option(arguments.trust);
  diagnostics errors;
  if (!address || address->port == 0)
    errors.push_back({"--join", address ? "port 0 cannot be reached; expected the port of the run's --accept"
                                        : address.error().front().text});
  const auto note = [&](const auto& option) {
    if (!option)
      append(errors, option.error());
  };
  note(threads);
  note(metrics);
  note(idle_timeout);
  note(grace);
  note(trust);
  if (!errors.empty())
    return print_errors(errors);
  if (auto ready =
          reexec_with(arguments.arithmetic == "portable" ? arithmetic_kind::portable : arithmetic_kind::machine);
      !ready)
    return print_errors(ready.error());
  return run_node({.join = *address,
                   .trust = std::move(*trust),
                   .threads = *threads,
                   .idle_timeout = *idle_timeout,
                   .grace = *grace,
                   .native_code = arguments.native_code},
                  *metrics, stdout);
}

/// Prints the outcome of the run. Returns the exit code, which is that of the run.
int report_end(const run_end& run, std::FILE* log) {
  switch (run.outcome) {
  case run_outcome::done:
    print_line(log, "the run is over");
    return exit_done;
  case run_outcome::interrupted:
    print_line(log, "the run was interrupted");
    return exit_interrupted;
  case run_outcome::failed:
    std::fprintf(stderr, "error: the run has failed: %s\n", run.reason.c_str());
    return exit_failed;
  case run_outcome::bad_input:
    break;
  }
  std::fprintf(stderr, "error: the run cannot start: %s\n", run.reason.c_str());
  return exit_bad_input;
}

} // namespace

int run_node(node_settings settings, const metrics_starter& metrics, std::FILE* log) {
  if (metrics)
    settings.serve_state = [metrics, log](process_state state) { return metrics(std::move(state), log); };
  settings.interrupts = &watch_interrupts();
  settings.say = [log](const std::string& text) { print_line(log, text); };
  const auto ended = join_run(settings);
  if (!ended)
    return print_errors(ended.error());
  int code = exit_done;
  switch (ended->end) {
  case node_exit::run_over:
    code = report_end(ended->run, log);
    break;
  case node_exit::left:
    print_line(log, "has left");
    break;
  case node_exit::overdue:
    print_line(log, "has left after the grace period; its rounds are rerun on other hosts");
    break;
  case node_exit::idle:
    std::fprintf(stderr, "error: no run at %s within the idle timeout\n", settings.join.text().c_str());
    code = exit_failed;
    break;
  case node_exit::lost:
    std::fprintf(
        stderr,
        "error: lost rank 0 at %s, and it has not come back within %d times worker.node_timeout; continue with "
        "mneme resume RUN_DIR --distributed on all ranks\n",
        settings.join.text().c_str(), node_timeouts_of_lost_run);
    code = exit_failed;
    break;
  }
  if (ended->is_loading)
    std::_Exit(code); // safe, because lines are flushed when they are printed
  return code;
}

int serve_nodes(const serve_arguments& arguments) {
  if (!has_nodes())
    return print_errors({{"mneme node", no_nodes_in_build}});
  if (arguments.join.empty() == arguments.keys.empty())
    return bad_input("expected one of mneme node --join HOST:PORT and --make-keys DIR");
  if (!arguments.join.empty())
    return join(arguments);
  if (const auto made = make_node_keys(arguments.keys); !made)
    return print_errors(made.error());
  std::printf("%s holds ca.pem, ca.key, node.pem and node.key: keep ca.key private, copy the others to every machine\n",
              printable(arguments.keys).c_str());
  return exit_done;
}

} // namespace mneme
