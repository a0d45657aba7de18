/// load_module: loads and checks a module file, and builds a net for a run from the module.
#pragma once
#include "runtime/modules/module_net.hpp"
namespace mneme {

/// Implements load_user_module() (user_module.hpp).
[[nodiscard]] expected<std::shared_ptr<const module_net>> load_module(const std::filesystem::path& file,
                                                                      const module_requirements& requirements);

} // namespace mneme
