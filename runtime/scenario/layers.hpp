/// layers: the TOML tables a scenario is put together from, lowest first, and what is wrong with them.
#pragma once
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/toml_library.hpp"
namespace mneme {

/// Where something stands. `line` 0: the source as a whole ("--set" has no lines).
struct place {
  std::string source{}; ///< The file as the user would name it, "--set", "preset 'paper' of 'fedavg'".
  std::int64_t line = 0, column = 0;
};
/// No line of it in particular.
[[nodiscard]] place whole(std::string source);
/// "file:line:column", or the source alone.
[[nodiscard]] std::string place_text(const place& at);

/// spelling: a number that TOML has in other digits. type: a value of another type than its key's, which replaces a
/// finding of the spelling at the same place.
enum class problem_kind { other, spelling, type };

struct problem {
  place at{};
  std::string text{};
  problem_kind kind = problem_kind::other;
};

/// One source of keys; a later one overrides those before it.
struct scenario_layer {
  std::string source{};
  std::filesystem::path folder{}; ///< What its paths are relative to.
  toml::table values{};
  bool has_lines = true;
  bool from_user = true;   ///< Not a preset.
  bool is_offered = false; ///< Another process has sent it: nothing of this machine's disk is opened by its word.
};
[[nodiscard]] place place_in(const scenario_layer& from, const toml::source_region& region);

struct layer_stack {
  std::vector<scenario_layer> layers{}; ///< Bases before what extends them, each file once; `--set` last.
  std::vector<problem> problems{};
};
/// Reads `file`, all it extends and the overrides. What could not be parsed is a problem and an empty layer.
[[nodiscard]] layer_stack read_layers(const std::filesystem::path& file, const overrides& over);

/// The same of a text that another process has sent, which extends nothing.
[[nodiscard]] layer_stack offered_layers(const std::string& text, const overrides& over);

/// Parses a text that is no file of the user's, such as a preset; syntax errors go to `problems`.
[[nodiscard]] scenario_layer parsed_layer(std::string source, const std::string& text, std::vector<problem>& problems);

} // namespace mneme
