/// named_paths: the files and folders that the keys of a scenario name.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct named_path {
  std::string key{}; ///< "model.weights"
  std::filesystem::path path{};
};

/// In the order of the resolved scenario; keys that name nothing are left out.
[[nodiscard]] std::vector<named_path> named_paths(scenario settings);

} // namespace mneme
