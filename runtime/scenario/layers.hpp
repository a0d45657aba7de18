/// layers: the TOML tables that are merged into a scenario, lowest priority first, and their problems.
#pragma once
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/toml_library.hpp"
namespace mneme {

/// Location in a source. Line 0 means the whole source; "--set" has no lines.
struct place {
  std::string source{}; ///< File as named by the user, "--set", or "preset 'paper' of 'fedavg'".
  std::int64_t line = 0, column = 0;
};
/// The location of a whole source.
[[nodiscard]] place whole(std::string source);
/// Formats "file:line:column", or only the source for line 0.
[[nodiscard]] std::string place_text(const place& at);

/// spelling: a number is not in TOML notation. type: a value has the wrong type; a problem of this kind replaces a
/// spelling problem at the same location.
enum class problem_kind { other, spelling, type };

struct scenario_error {
  place at{};
  std::string text{};
  problem_kind kind = problem_kind::other;
};

/// One source of keys. Later layers override earlier ones.
struct scenario_layer {
  std::string source{};
  std::filesystem::path folder{}; ///< Folder that relative paths refer to.
  toml::table values{};
  bool has_lines = true;
  bool from_user = true;    ///< False for a preset.
  bool is_received = false; ///< True: another process sent it, so its paths must not open files of this machine.
};
/// Location of a TOML value in a layer.
[[nodiscard]] place place_in(const scenario_layer& from, const toml::source_region& region);

struct layer_stack {
  std::vector<scenario_layer> layers{}; ///< Bases come before the files that extend them, each file once; `--set` is
                                        ///< last.
  std::vector<scenario_error> problems{};
};
/// Reads `file`, all files that it extends, and the overrides. A file with a syntax error gives a problem and an empty
/// layer.
[[nodiscard]] layer_stack read_layers(const std::filesystem::path& file, const overrides& over);

/// Parses a text received from another process, which must not contain `extends`.
[[nodiscard]] layer_stack read_received_layers(const std::string& text, const overrides& over);

/// Parses a text that is not a file of the user, such as a preset. Adds syntax errors to `problems`.
[[nodiscard]] scenario_layer parse_layer(std::string source, const std::string& text,
                                         std::vector<scenario_error>& problems);

} // namespace mneme
