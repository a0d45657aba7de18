/// run_options: options and final messages shared by the commands that run scenarios.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/command_line.hpp"
namespace mneme {

/// Parses --threads; returns 0 for "".
[[nodiscard]] expected<std::int64_t> threads_option(const std::string& text);
/// Parses the values of --set, each "KEY=VALUE".
[[nodiscard]] expected<overrides> parse_settings(const std::vector<std::string>& settings);
[[nodiscard]] progress_style style_option(bool quiet, bool json);
/// Warns on stderr if a completed run had fewer rounds than `round`, so that --dump-round stored nothing. @param round
/// 0: no dump was requested
void warn_of_absent_round(const run_summary& ended, std::int64_t round);
/// Returns the exit code of a run. If the run failed or was interrupted, prints the reason and the command for resuming
/// on stderr.
int exit_code_of(const run_summary& ended);

} // namespace mneme
