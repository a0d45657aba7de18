#include "runtime/data/domain_folders.hpp"
#include "runtime/data/folder_content.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
#include <set>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::size_t folder_diagnostics_max = 20;

struct split_pictures {
  std::vector<photograph> train{}, test{};
};

/// Lists all images of the folders, in order. @param apart true: every fifth image of a folder goes to `test`
expected<split_pictures> listed(const std::vector<picture_folder>& folders, bool apart) {
  split_pictures pictures;
  diagnostics wrong;
  for (const auto& [folder, label, domain] : folders) {
    const auto files = pictures_in(folder);
    if (!files) {
      if (wrong.size() < folder_diagnostics_max)
        wrong.push_back(files.error().front());
      continue;
    }
    for (std::size_t i = 0; i < files->size(); ++i)
      (apart && i % 5 == 4 ? pictures.test : pictures.train).push_back({(*files)[i], label, domain});
  }
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));
  return pictures;
}

expected<raw_data> read(const split_pictures& pictures, const data_section& data, raw_data about) {
  const auto table = [&](const std::vector<photograph>& files, row_limits limits) {
    return read_photographs(files, limits, about.classes, data.side, photograph_fit::centre);
  };
  about.mean = {0.485, 0.456, 0.406}; // constants of ImageNet
  about.deviation = {0.229, 0.224, 0.225};
  return with_splits(about, table(pictures.train, train_limits(data)), table(pictures.test, test_limits(data)));
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

expected<raw_data> read_domain_folders(const std::vector<picture_folder>& folders, const data_section& data,
                                       raw_data about) {
  const auto pictures = listed(folders, true);
  if (!pictures)
    return tl::unexpected(pictures.error());
  return read(*pictures, data, std::move(about));
}

expected<raw_data> read_domain_folders(const std::vector<picture_folder>& train,
                                       const std::vector<picture_folder>& test, const data_section& data,
                                       raw_data about) {
  auto pictures = listed(train, false);
  const auto others = listed(test, false);
  if (auto wrong = all_diagnostics(pictures, others); !wrong.empty())
    return tl::unexpected(std::move(wrong));
  pictures->test = others->train;
  return read(*pictures, data, std::move(about));
}

expected<raw_data> read_domain_lists(const std::vector<picture_list>& train, const std::vector<picture_list>& test,
                                     const path& folder, const data_section& data, raw_data about) {
  auto pictures = read_picture_lists(train, folder);
  auto others = read_picture_lists(test, folder);
  if (auto wrong = all_diagnostics(pictures, others); !wrong.empty())
    return tl::unexpected(std::move(wrong));
  std::set<std::int32_t> labels;
  for (const auto& picture : *pictures)
    labels.insert(picture.label);
  for (const auto& picture : *others)
    about.classes = std::max<std::int64_t>(about.classes, picture.label + 1);
  about.classes = std::max<std::int64_t>(about.classes, *labels.rbegin() + 1);
  for (std::int32_t label = 0; label < about.classes; ++label)
    if (!labels.contains(label))
      return failed(train.front().file.string(), "and the other lists have no training picture of class " +
                                                     std::to_string(label) + "; labels count from 0");
  return read({.train = std::move(*pictures), .test = std::move(*others)}, data, std::move(about));
}

} // namespace mneme
