/// layers: the TOML tables from which a scenario is merged, lowest priority first, and their problems.
#pragma once
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/toml_library.hpp"
namespace mneme {

/// Position in a source. `line` 0 means the source as a whole ("--set" has no lines).
struct place {
  std::string source{}; ///< The file as the user would name it, "--set", "preset 'paper' of 'fedavg'".
  std::int64_t line = 0, column = 0;
};
/// A place without a line.
[[nodiscard]] place whole(std::string source);
/// "file:line:column", or only the source.
[[nodiscard]] std::string place_text(const place& at);

/// spelling: a number that is not in TOML notation. type: a value of the wrong type; it replaces a spelling problem at
/// the same place.
enum class problem_kind { other, spelling, type };

struct problem {
  place at{};
  std::string text{};
  problem_kind kind = problem_kind::other;
};

/// One source of keys. A later layer overrides earlier ones.
struct scenario_layer {
  std::string source{};
  std::filesystem::path folder{}; ///< Base of its relative paths.
  toml::table values{};
  bool has_lines = true;
  bool from_user = true;   ///< False for a preset.
  bool is_offered = false; ///< True: received from another process; its paths must not open files of this machine.
};
[[nodiscard]] place place_in(const scenario_layer& from, const toml::source_region& region);

struct layer_stack {
  std::vector<scenario_layer> layers{}; ///< Bases before the files that extend them, each file once; `--set` last.
  std::vector<problem> problems{};
};
/// Reads `file`, all files that it extends, and the overrides. A file that cannot be parsed yields a problem and an
/// empty layer.
[[nodiscard]] layer_stack read_layers(const std::filesystem::path& file, const overrides& over);

/// Reads a text received from another process; it must not contain `extends`.
[[nodiscard]] layer_stack offered_layers(const std::string& text, const overrides& over);

/// Parses a text that is not a user's file, such as a preset. Syntax errors are added to `problems`.
[[nodiscard]] scenario_layer parsed_layer(std::string source, const std::string& text, std::vector<problem>& problems);

} // namespace mneme
