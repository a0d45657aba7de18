/// read_scenario: from a TOML file to a scenario, and from a scenario to text and digest.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Overrides from the command line: "rounds.cohort" and a TOML value (or a bare string).
using overrides = std::vector<std::pair<std::string, std::string>>;

struct reading {
  scenario value{};
  diagnostics warnings{}; ///< Keys given that the chosen kind does not read.
};
/// Reads `file`, what it extends, and `over`; on failure all diagnostics at once.
[[nodiscard]] expected<reading> read_scenario(const std::filesystem::path& file, const overrides& over);

/// Reads what another process has sent: `text` extends nothing, and keys of the kind path have the values of `over` or
/// none, so that nothing of this machine is opened by its word; other values of them are errors.
[[nodiscard]] expected<reading> read_offered_scenario(const std::string& text, const overrides& over);

/// `title` of a scenario file, without its bases; "" if it has none or does not parse.
[[nodiscard]] std::string title_of(const std::filesystem::path& file);

/// Every key with its value, as TOML that read_scenario() reads back to an equal scenario.
[[nodiscard]] std::string resolved_text(const scenario& settings);

/// 128-bit XXH3, 32 hex digits, of the resolved scenario without title, [worker], [checkpoint] and
/// data.root; a path counts by the content of its file.
[[nodiscard]] std::string scenario_digest(const scenario& settings);

} // namespace mneme
