/// read_scenario: reads a TOML file into a scenario, and writes a scenario as text or digest.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Overrides from the command line: "rounds.cohort" and a TOML value (or a bare string).
using overrides = std::vector<std::pair<std::string, std::string>>;

struct reading {
  scenario value{};
  diagnostics warnings{}; ///< One for each key given that the chosen kind does not read.
};
/// Reads `file`, the files that it extends, and `over`. On failure returns all diagnostics.
[[nodiscard]] expected<reading> read_scenario(const std::filesystem::path& file, const overrides& over);

/// Reads a scenario received from another process. `text` must not extend files. A path must be empty or replaced by
/// `over`, so that the sender cannot open files of this machine; other paths are errors.
[[nodiscard]] expected<reading> read_offered_scenario(const std::string& text, const overrides& over);

/// The title in a scenario file, without its bases; "" if it has none or cannot be parsed.
[[nodiscard]] std::string title_of(const std::filesystem::path& file);

/// Every key with its value, as TOML that read_scenario() reads into an equal scenario.
[[nodiscard]] std::string resolved_text(const scenario& settings);

/// 128-bit XXH3 (32 hex digits) of the resolved scenario without title, [worker], [checkpoint] and data.root. A path is
/// hashed by the content of its file.
[[nodiscard]] std::string scenario_digest(const scenario& settings);

} // namespace mneme
