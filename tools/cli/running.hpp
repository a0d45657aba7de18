/// What commands that run something share: threads, style, and what the end of a run says.
#pragma once
#include "actors/run/simulation.hpp"
namespace mneme {

/// The value of --threads; 0 for "".
[[nodiscard]] expected<std::int64_t> parsed_threads(const std::string& text);
[[nodiscard]] progress_style style_of(bool quiet, bool json);
/// Says on stderr why a run did not end well, and how to go on with it.
int exit_code_of(const run_summary& ended);

} // namespace mneme
