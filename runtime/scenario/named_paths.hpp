/// named_paths: the files and folders that the keys of a scenario name.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// model.weights where a net that is never trained is to stay as it is drawn: a word, and no path.
inline constexpr const char* weights_as_drawn = "as-drawn";

struct named_path {
  std::string key{}; ///< "model.weights"
  std::filesystem::path path{};
};

/// In the order of the resolved scenario; keys that name nothing are left out.
[[nodiscard]] std::vector<named_path> named_paths(scenario settings);

} // namespace mneme
