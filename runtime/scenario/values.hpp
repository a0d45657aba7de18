/// read_value: reads a TOML value into the member that a key is bound to.
#pragma once
#include "runtime/scenario/layers.hpp"
namespace mneme {

/// Returns the problems found; then the member keeps its value. `name` is the full key for messages: "rounds.cohort".
/// Relative paths start at the folder of the layer.
[[nodiscard]] std::vector<problem> read_value(const key& into, const std::string& name, const toml::node& from,
                                              const scenario_layer& source);

/// TOML text of a value; parsing restores the value.
[[nodiscard]] std::string value_text(const toml::node& value);
/// Value for messages, cut after 60 characters.
[[nodiscard]] std::string found_text(const toml::node& value);
/// "a string", "an integer", "a table", ...
[[nodiscard]] std::string type_text(const toml::node& value);

} // namespace mneme
