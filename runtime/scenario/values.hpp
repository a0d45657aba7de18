/// values: reads a TOML value into the member that a key is bound to.
#pragma once
#include "runtime/scenario/layers.hpp"
namespace mneme {

/// Reads a value. Returns the problems; if there are any, the member keeps its value. Relative paths refer to the
/// layer's folder. @param name full key for messages: "rounds.cohort"
[[nodiscard]] std::vector<scenario_error> read_value(const key& into, const std::string& name, const toml::node& from,
                                                     const scenario_layer& source);

/// Formats a value as TOML, from which parsing restores it.
[[nodiscard]] std::string value_text(const toml::node& value);
/// Formats a value for messages, cut after 60 characters.
[[nodiscard]] std::string found_text(const toml::node& value);
/// Names the type of a value: "a string", "an integer", "a table", ...
[[nodiscard]] std::string type_text(const toml::node& value);

} // namespace mneme
