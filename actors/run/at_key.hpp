/// at_key: errors of a file, located at the key that names the file.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Prefixes each error with the location of the key.
[[nodiscard]] inline diagnostics at_key(const scenario& settings, const std::string& key, diagnostics problems) {
  for (auto& diagnostic : problems)
    diagnostic.where = settings.where(key) + ": " + diagnostic.where;
  return problems;
}

} // namespace mneme
