/// rename_keys: replaces deprecated names of keys and words in the layers of a scenario.
#pragma once
#include "runtime/scenario/layers.hpp"
#include <span>
namespace mneme {

/// Results of rename_keys(): a warning for each deprecated name, an error for each key that has both names.
struct rename_findings {
  std::vector<scenario_error> warnings{}, errors{};
};

/// Replaces deprecated names with the current ones; the locations of values stay. A source, which is a file or the
/// command line, must not use both names of a key.
/// @param method value of strategy.name: keys of other methods are not replaced
[[nodiscard]] rename_findings rename_keys(std::span<scenario_layer> layers, const std::string& method);

} // namespace mneme
