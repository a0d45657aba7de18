/// files: searches the user's folders for the files of a data set.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// Files that belong in one folder.
struct file_set {
  std::string data_set{};                        ///< For diagnostics.
  std::vector<std::string> folders{};            ///< Below a root, named as in public downloads, tried in order.
  std::vector<std::vector<std::string>> names{}; ///< For each file, its possible names; .gz and .xz are tried, too.
  std::string remedy{};                          ///< How to obtain the files, for the diagnostic.
};

/// Returns one path per entry of `set.names`, from the first folder that has all files. A root may itself be such a
/// folder, by its name or by `data.root`. The diagnostic lists the searched folders and names, files that are missing
/// in an incomplete folder, and the remedy.
[[nodiscard]] expected<std::vector<std::filesystem::path>> find_files(const file_set& set, const data_section& data,
                                                                      const std::vector<std::filesystem::path>& roots);

} // namespace mneme
