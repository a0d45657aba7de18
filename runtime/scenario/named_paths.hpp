/// named_paths: the files and folders that the keys of a scenario name.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Value of model.weights that keeps the randomly initialized weights of an untrained net. A word, not a path.
inline constexpr const char* weights_as_drawn = "as-drawn";

struct named_path {
  std::string key{}; ///< "model.weights"
  std::filesystem::path path{};
};

/// In the order of the resolved scenario, without empty paths.
[[nodiscard]] std::vector<named_path> named_paths(scenario settings);

} // namespace mneme
