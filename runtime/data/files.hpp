/// files: the search for a data set's files below the folders where users keep data.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/settings/scenario.hpp"
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// Files that lie in one folder together.
struct file_set {
  std::string data_set{};                        ///< For diagnostics.
  std::vector<std::string> folders{};            ///< Below a root, as public downloads name them; tried in order.
  std::vector<std::vector<std::string>> names{}; ///< Per file, the names it may have; .gz and .xz are tried too.
  std::string remedy{};                          ///< What brings the files: a sentence for the diagnostic.
};

/// One path per entry of `set.names`, from the first folder that has them all. A root may itself be
/// such a folder: by its name, or because `data.root` says so. The diagnostic lists where and what was
/// looked for, what is missing where some of the files are, and the remedy.
[[nodiscard]] expected<std::vector<std::filesystem::path>> find_files(const file_set& set, const data_section& data,
                                                                      const std::vector<std::filesystem::path>& roots);

} // namespace mneme
