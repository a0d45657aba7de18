/// What commands that run something share: threads, style, and what the end of a run says.
#pragma once
#include "actors/run/simulation.hpp"
#include "runtime/scenario/read.hpp"
#include "tools/cli/command_line.hpp"
namespace mneme {

/// The value of --threads; 0 for "".
[[nodiscard]] expected<std::int64_t> threads_option(const std::string& text);
/// The values of --set: "KEY=VALUE" each.
[[nodiscard]] expected<overrides> parsed_settings(const std::vector<std::string>& settings);
/// The values of --nodes, --cert, --key and --ca.
[[nodiscard]] expected<void> node_options(const node_arguments& arguments, run_options& into);
[[nodiscard]] tls_files tls_option(const node_arguments& arguments);
[[nodiscard]] progress_style style_option(bool quiet, bool json);
/// Says on stderr where a run had no round of that number, whose values were asked for; 0: none were.
void warn_of_absent_round(const run_summary& ended, std::int64_t round);
/// Says on stderr why a run did not end well, and how to go on with it.
int exit_code_of(const run_summary& ended);

} // namespace mneme
