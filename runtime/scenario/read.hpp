/// read_scenario: parses TOML files to a scenario, and formats a scenario as text or digest.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Overrides on the command line: a key, such as "rounds.cohort", and a TOML value or bare string.
using overrides = std::vector<std::pair<std::string, std::string>>;

struct reading {
  scenario value{};
  diagnostics warnings{}; ///< One warning for each key that the user gave and that the chosen kind does not read.
};
/// Reads `file`, the files that it extends, and the overrides. Returns all errors on failure.
[[nodiscard]] expected<reading> read_scenario(const std::filesystem::path& file, const overrides& over);

/// Reads a scenario received from another process. The text must not have the key `extends`. Each path must be empty
/// or overridden by `over`, so that the sender cannot open files of this machine.
[[nodiscard]] expected<reading> read_received_scenario(const std::string& text, const overrides& over);

/// The title in a scenario file, ignoring its bases. Returns "" if there is none or the file has errors.
[[nodiscard]] std::string title_of(const std::filesystem::path& file);

/// All keys with their values as TOML, from which read_scenario() restores the scenario.
[[nodiscard]] std::string resolved_text(const scenario& settings);

/// 128-bit XXH3 digest (32 hexadecimal digits) of the resolved scenario. The digest excludes title, [worker],
/// [checkpoint] and data.root. A path is represented by its file's content.
[[nodiscard]] std::string scenario_digest(const scenario& settings);

} // namespace mneme
