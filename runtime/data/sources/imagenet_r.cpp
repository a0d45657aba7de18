// ImageNet-R: renditions of 200 ImageNet classes as art, toys, sketches and others (Hendrycks et al. 2021, "The Many
// Faces of Robustness"), one folder of JPEG files per class. Images have different sizes; the centered square is
// resized to 224x224.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/image_entries.hpp"
#include "runtime/data/splits.hpp"
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::int64_t imagenet_r_side_px = 224;

const file_set imagenet_r_files{.data_set = "imagenet-r",
                                .folders = {"imagenet-r"},
                                .names = {{"n01443537"}}, // the folder of the first class, which always exists
                                .remedy = "Unpack imagenet-r.tar of the authors (2 GB), a folder for each class."};

/// There is no official split. Every fifth file of a class by name (numbers 4, 9, 14, ...) is a test image.
bool is_test(std::size_t place) { return place % 5 == 4; }

expected<raw_data> load_imagenet_r(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(imagenet_r_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto classes = wordnet_folders(files->front().parent_path());
  const auto entries = image_entries_in(classes);
  if (!entries)
    return tl::unexpected(entries.error());
  const auto both = split_by_place(*entries, is_test);
  if (both.test.empty())
    return failed(files->front().parent_path().string(), "no class has five images: fetch the data set again");
  const auto read = [&](const std::vector<image_entry>& chosen, row_limits limits) {
    return read_fitted_images(chosen, limits, std::ssize(classes), imagenet_r_side_px, image_fit::center_bicubic);
  };
  return with_splits({.name = "imagenet-r",
                      .classes = std::ssize(classes),
                      .class_names = folder_names(classes),
                      .mean = {0.485, 0.456, 0.406},
                      .deviation = {0.229, 0.224, 0.225}},
                     read(both.train, train_limits(data)), read(both.test, test_limits(data)));
}

const source_registration imagenet_r_line{
    {.name = "imagenet-r",
     .summary = "24,000 + 6,000 renditions of objects (art, toys, sketches) in JPEG, color 224x224, 200 classes; "
                "every fifth image of a class is a test image; no download by mneme",
     .files = imagenet_r_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_imagenet_r(data, roots); }}};

} // namespace
} // namespace mneme
