/// named_paths: lists the files and folders that the keys of a scenario name.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Value of model.weights that keeps the random initial weights. It is a word, not a path.
inline constexpr const char* weights_as_drawn = "as-drawn";

struct named_path {
  std::string key{}; ///< Full name such as "model.weights".
  std::filesystem::path path{};
};

/// All non-empty paths, in the order of the resolved scenario.
[[nodiscard]] std::vector<named_path> named_paths(scenario settings);

} // namespace mneme
