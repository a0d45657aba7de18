#include "runtime/data/files.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

using std::filesystem::path;

bool is_there(const path& place) {
  std::error_code ignored;
  return std::filesystem::exists(place, ignored);
}

/// True if `place` ends with the folders `folder`: "/data/MNIST/raw" ends with "MNIST/raw".
bool ends_with(const path& place, const path& folder) {
  const auto normal = (place / "").lexically_normal().parent_path(); // removes a trailing slash
  const auto tail = std::distance(folder.begin(), folder.end());
  const auto total = std::distance(normal.begin(), normal.end());
  return tail <= total && std::equal(folder.begin(), folder.end(), std::next(normal.begin(), total - tail));
}

std::vector<path> candidates(const file_set& set, const data_section& data, const std::vector<path>& roots) {
  std::vector<path> paths;
  for (const auto& root : roots) {
    for (const auto& folder : set.folders)
      paths.push_back(root / folder);
    const auto named = [&root](const std::string& folder) { return ends_with(root, folder); };
    if (!data.root.empty() || std::any_of(set.folders.begin(), set.folders.end(), named))
      paths.push_back(root);
  }
  return paths;
}

/// The first existing file in `folder` with one of the names; empty if there is none.
path with_names(const path& folder, const std::vector<std::string>& names) {
  for (const auto& name : names)
    for (const char* suffix : {"", ".gz", ".xz"})
      if (auto file = folder / (name + suffix); is_there(file))
        return file;
  return {};
}

std::string missing_text(const file_set& set, const std::vector<path>& folders, const std::string& partly) {
  std::vector<std::string> files, places;
  for (const auto& names : set.names)
    files.push_back(fmt::format("{}", fmt::join(names, " or ")));
  for (const auto& folder : folders)
    places.push_back(folder.string());
  const auto where = places.empty() ? std::string("no folder: neither data.root nor MNEME_DATA names one")
                                    : fmt::format("{}", fmt::join(places, ", "));
  return fmt::format("the files were not found. Searched: {}. Looked for: {} (each also with .gz or .xz).{} {} Files "
                     "elsewhere are found through data.root or $MNEME_DATA.",
                     where, fmt::join(files, ", "), partly, set.remedy);
}

} // namespace

expected<std::vector<path>> find_files(const file_set& set, const data_section& data, const std::vector<path>& roots) {
  const auto folders = candidates(set, data, roots);
  std::string partly;
  for (const auto& folder : folders) {
    std::vector<path> files;
    std::vector<std::string> absent;
    for (const auto& names : set.names)
      if (auto file = with_names(folder, names); file.empty())
        absent.push_back(names.front());
      else
        files.push_back(std::move(file));
    if (absent.empty())
      return files;
    if (!files.empty())
      partly += fmt::format(" {} has only some of them; it lacks {}.", folder.string(), fmt::join(absent, ", "));
  }
  return failed(fmt::format("data set '{}'", set.data_set), missing_text(set, folders, partly));
}

} // namespace mneme
