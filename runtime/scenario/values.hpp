/// read_value: a TOML value into the member a key is bound to, or what is wrong with it.
#pragma once
#include "runtime/scenario/layers.hpp"
namespace mneme {

/// `name` is the key in full, for texts: "rounds.cohort". Paths become absolute below the layer's
/// folder. On a problem the member keeps its value.
[[nodiscard]] std::vector<problem> read_value(const key& into, const std::string& name, const toml::node& from,
                                              const scenario_layer& source);

/// A value as TOML that reads back to it.
[[nodiscard]] std::string value_text(const toml::node& value);
/// A value as the user would recognise it, cut after 60 characters.
[[nodiscard]] std::string found_text(const toml::node& value);
/// "a string", "an integer", "a table", ...
[[nodiscard]] std::string type_text(const toml::node& value);

} // namespace mneme
