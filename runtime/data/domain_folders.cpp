#include "runtime/data/domain_folders.hpp"
#include "runtime/data/folder_content.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
#include <set>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::size_t folder_diagnostics_max = 20;

struct split_entries {
  std::vector<image_entry> train{}, test{};
};

/// Lists all images of the folders, in order. @param apart true: every fifth image of a folder goes to `test`
expected<split_entries> listed(const std::vector<image_folder>& folders, bool apart) {
  split_entries entries;
  diagnostics errors;
  for (const auto& [folder, label, domain] : folders) {
    const auto files = image_files_in(folder);
    if (!files) {
      if (errors.size() < folder_diagnostics_max)
        errors.push_back(files.error().front());
      continue;
    }
    for (std::size_t i = 0; i < files->size(); ++i)
      (apart && i % 5 == 4 ? entries.test : entries.train).push_back({(*files)[i], label, domain});
  }
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return entries;
}

expected<raw_data> read(const split_entries& entries, const data_section& data, raw_data about) {
  const auto table = [&](const std::vector<image_entry>& files, row_limits limits) {
    return read_fitted_images(files, limits, about.classes, data.side, image_fit::center);
  };
  about.mean = {0.485, 0.456, 0.406}; // the constants of ImageNet
  about.deviation = {0.229, 0.224, 0.225};
  return with_splits(about, table(entries.train, train_limits(data)), table(entries.test, test_limits(data)));
}

} // namespace

expected<std::vector<path>> folders_in(const path& folder) {
  std::vector<path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_directory(error) && !is_ignored_folder(entry->path()))
      paths.push_back(entry->path());
  if (paths.empty())
    return failed(folder.string(), "holds no folders: fetch the data set again");
  std::sort(paths.begin(), paths.end());
  return paths;
}

expected<raw_data> read_domain_folders(const std::vector<image_folder>& folders, const data_section& data,
                                       raw_data about) {
  const auto entries = listed(folders, true);
  if (!entries)
    return tl::unexpected(entries.error());
  return read(*entries, data, std::move(about));
}

expected<raw_data> read_domain_folders(const std::vector<image_folder>& train, const std::vector<image_folder>& test,
                                       const data_section& data, raw_data about) {
  auto entries = listed(train, false);
  const auto others = listed(test, false);
  if (auto errors = all_diagnostics(entries, others); !errors.empty())
    return tl::unexpected(std::move(errors));
  entries->test = others->train;
  return read(*entries, data, std::move(about));
}

expected<raw_data> read_domain_lists(const std::vector<image_list>& train, const std::vector<image_list>& test,
                                     const path& folder, const data_section& data, raw_data about) {
  auto entries = read_image_lists(train, folder);
  auto others = read_image_lists(test, folder);
  if (auto errors = all_diagnostics(entries, others); !errors.empty())
    return tl::unexpected(std::move(errors));
  std::set<std::int32_t> labels;
  for (const auto& image : *entries)
    labels.insert(image.label);
  for (const auto& image : *others)
    about.classes = std::max<std::int64_t>(about.classes, image.label + 1);
  about.classes = std::max<std::int64_t>(about.classes, *labels.rbegin() + 1);
  for (std::int32_t label = 0; label < about.classes; ++label)
    if (!labels.contains(label))
      return failed(train.front().file.string(), "and the other lists have no training image of class " +
                                                     std::to_string(label) + "; labels count from 0");
  return read({.train = std::move(*entries), .test = std::move(*others)}, data, std::move(about));
}

} // namespace mneme
