/// files: finds the files of a data set in the user's folders.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// The files of a data set, which are in one folder.
struct file_set {
  std::string data_set{};                        ///< Name of the data set, for diagnostics.
  std::vector<std::string> folders{};            ///< Folder names of public downloads, below a root; tried in order.
  std::vector<std::vector<std::string>> names{}; ///< For each file, its possible names. Each is also tried with .gz and
                                                 ///< .xz.
  std::string remedy{};                          ///< Instructions for obtaining the files, for the diagnostic.
};

/// Returns one path per entry of `set.names`, all from the first folder that has all files. A root may be such a folder
/// itself, if it has the right name or is `data.root`. The error lists searched folders and names, missing files of an
/// incomplete folder, and the remedy.
[[nodiscard]] expected<std::vector<std::filesystem::path>> find_files(const file_set& set, const data_section& data,
                                                                      const std::vector<std::filesystem::path>& roots);

} // namespace mneme
