// Tiny ImageNet: 64x64 photographs of 200 classes (Stanford's course CS231n 2015), in folders of JPEG files. Classes
// are numbered by WordNet id. Test rows are the validation images, whose labels are in a text file, because the labels
// of the official test images are not public.
#include "runtime/base/disk_file.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/image_entries.hpp"
#include "runtime/data/splits.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <sstream>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::int64_t tiny_imagenet_side_px = 64;
constexpr std::uint64_t validation_list_bytes_max = std::uint64_t{1} << 26U; // 24 times the original list

const file_set tiny_imagenet_files{.data_set = "tiny-imagenet",
                                   .folders = {"tiny-imagenet-200"},
                                   .names = {{"wnids.txt"}, {"val/val_annotations.txt"}},
                                   .remedy = "`tools/fetch_data tiny-imagenet` downloads them."};

/// Reads the WordNet ids of the classes, sorted.
expected<std::vector<std::string>> read_classes(const path& file) {
  const auto text = text_of_file(file, validation_list_bytes_max);
  if (!text)
    return tl::unexpected(text.error());
  std::vector<std::string> names;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.pop_back();
    if (!is_wordnet_id(line))
      return failed(fmt::format("{}:{}", file.string(), names.size() + 1),
                    "expected the name of a class, an n and eight digits: fetch the data set again");
    names.push_back(line);
  }
  std::sort(names.begin(), names.end());
  if (names.empty() || std::adjacent_find(names.begin(), names.end()) != names.end())
    return failed(file.string(), "expected the name of each class once: fetch the data set again");
  return names;
}

expected<image_table> read_train(const path& folder, const std::vector<std::string>& classes, row_limits limits) {
  std::vector<path> folders;
  for (const auto& name : classes)
    folders.push_back(folder / name / "images");
  const auto entries = image_entries_in(folders);
  if (!entries)
    return tl::unexpected(entries.error());
  return read_fitted_images(*entries, limits, std::ssize(classes), tiny_imagenet_side_px, image_fit::exact);
}

/// Reads the list of validation images. Each line has a file name, a class, and a box that is ignored.
expected<image_table> read_validation(const path& file, const std::vector<std::string>& classes, row_limits limits) {
  const auto text = text_of_file(file, validation_list_bytes_max);
  if (!text)
    return tl::unexpected(text.error());
  std::vector<image_entry> entries;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, label;
    words >> name >> label;
    const auto place = std::lower_bound(classes.begin(), classes.end(), label);
    if (name.empty() || name.find('/') != std::string::npos || place == classes.end() || *place != label)
      return failed(fmt::format("{}:{}", file.string(), entries.size() + 1),
                    "expected the name of an image and one of the classes of wnids.txt: fetch the data set again");
    entries.push_back({file.parent_path() / "images" / name, static_cast<std::int32_t>(place - classes.begin())});
  }
  if (entries.empty())
    return failed(file.string(), "names no images: fetch the data set again");
  return read_fitted_images(entries, limits, std::ssize(classes), tiny_imagenet_side_px, image_fit::exact);
}

expected<raw_data> load_tiny_imagenet(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(tiny_imagenet_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto classes = read_classes(files->front());
  if (!classes)
    return tl::unexpected(classes.error());
  return with_splits({.name = "tiny-imagenet",
                      .classes = std::ssize(*classes),
                      .class_names = *classes,
                      .mean = {0.4802, 0.4481, 0.3975},
                      .deviation = {0.2302, 0.2265, 0.2262}},
                     read_train(files->front().parent_path() / "train", *classes, train_limits(data)),
                     read_validation(files->back(), *classes, test_limits(data)));
}

const source_registration tiny_imagenet_line{
    {.name = "tiny-imagenet",
     .summary = "100,000 + 10,000 photographs in JPEG, color 64x64, 200 classes; tools/fetch_data tiny-imagenet",
     .files = tiny_imagenet_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) {
       return load_tiny_imagenet(data, roots);
     }}};

} // namespace
} // namespace mneme
