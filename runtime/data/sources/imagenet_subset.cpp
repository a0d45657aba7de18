// ImageNet (Deng et al. 2009) or a subset of its classes: train/ and val/ with one folder of JPEG files per class, the
// usual layout. Images are resized to squares of data.side pixels.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/image_entries.hpp"
#include "runtime/data/splits.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

using std::filesystem::path;

const file_set imagenet_subset_files{
    .data_set = "imagenet-subset",
    .folders = {"imagenet-subset", "imagenet"},
    .names = {{"train"}, {"val"}},
    .remedy = "Unpack ImageNet into train/ and val/, a folder such as n01440764 for each class."};

/// The subfolders of `folder` with the same names as the folders in `classes`.
std::vector<path> same_classes(const path& folder, const std::vector<path>& classes) {
  std::vector<path> folders;
  for (const auto& name : classes)
    folders.push_back(folder / name.filename());
  return folders;
}

expected<raw_data> load_imagenet_subset(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(imagenet_subset_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto &train = files->front(), &validation = files->back();
  const auto classes = wordnet_folders(train);
  if (classes.empty())
    return failed(train.string(), "holds no folder of a class; expected names such as n01440764");
  for (const auto& tested : wordnet_folders(validation))
    if (!std::filesystem::exists(train / tested.filename()))
      return failed(tested.string(), fmt::format("this class has no training images in {}", train.string()));
  const auto read = [&](const path& folder, row_limits limits) -> expected<image_table> {
    const auto entries = image_entries_in(same_classes(folder, classes));
    if (!entries)
      return tl::unexpected(entries.error());
    return read_fitted_images(*entries, limits, std::ssize(classes), data.side, image_fit::center);
  };
  return with_splits({.name = "imagenet-subset",
                      .classes = std::ssize(classes),
                      .class_names = folder_names(classes),
                      .mean = {0.485, 0.456, 0.406},
                      .deviation = {0.229, 0.224, 0.225}},
                     read(train, train_limits(data)), read(validation, test_limits(data)));
}

const source_registration imagenet_subset_line{
    {.name = "imagenet-subset",
     .summary = "classes of ImageNet in folders train/ and val/, JPEG scaled to color squares of data.side pixels; no "
                "download by mneme",
     .files = imagenet_subset_files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_imagenet_subset(data, roots); },
     .image_folders = true}};

} // namespace
} // namespace mneme
