/// The command line of mneme: what the user typed, and which command it becomes.
#pragma once
#include <string>
#include <vector>
namespace mneme {

/// Exit codes of the program.
enum exit_code : int { exit_done = 0, exit_failed = 1, exit_bad_input = 2, exit_interrupted = 130 };

/// `mneme run SCENARIO... [--set KEY=VALUE]... [--seeds 1,2,3] [--out DIR] [--threads N] [--quiet|--json] [--trace]`
struct run_arguments {
  std::vector<std::string> scenarios{};
  std::vector<std::string> settings{}; ///< "KEY=VALUE"
  std::string seeds{};                 ///< "1,2,3"; empty: the scenario's own
  std::string out{};                   ///< Empty: the default folder below runs/
  std::string threads{};               ///< Empty: one per core
  bool quiet = false, json = false, trace = false;
};

/// `mneme resume RUN_DIR [--threads N] [--quiet|--json]`
struct resume_arguments {
  std::vector<std::string> folders{};
  std::string threads{}; ///< Empty: one per core
  bool quiet = false, json = false;
};

/// The whole program: parses, dispatches, and turns exceptions into words and exit codes.
[[nodiscard]] int run_command_line(int count, const char* const* words);

// The commands, a source file each. All of them print, and return an exit code.
[[nodiscard]] int run_scenarios(const run_arguments& arguments);
[[nodiscard]] int resume_run(const resume_arguments& arguments);
[[nodiscard]] int validate_scenarios(const std::vector<std::string>& scenarios);
/// `what`: "" for all, or one of listed_things().
[[nodiscard]] int list_things(const std::string& text, bool markdown);
[[nodiscard]] const std::vector<std::string>& listed_things();
/// `mneme doctor [--json]`: the machine, and whether it gives equal bits; exit_failed where it does not.
[[nodiscard]] int examine(bool json);
/// A section, method, model or key; commands are explained by their own options.
[[nodiscard]] int explain(const std::string& topic, const std::vector<std::string>& commands);

} // namespace mneme
