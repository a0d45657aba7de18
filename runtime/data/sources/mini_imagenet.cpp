// Mini-ImageNet: 100 ImageNet classes with 600 photographs each (Vinyals et al. 2016, "Matching Networks for One Shot
// Learning"), one folder of JPEG files per class, resized to 84x84 pixels. The split is that of federated
// class-incremental learning (Dong et al. 2022): the first 500 files of a class by name are training images.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/image_entries.hpp"
#include "runtime/data/splits.hpp"
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::int64_t mini_imagenet_side_px = 84;
constexpr std::size_t train_files = 500; // number of training images per class

const file_set mini_imagenet_files{.data_set = "mini-imagenet",
                                   .folders = {"mini-imagenet", "miniImagenet"},
                                   .names = {{"n01532829"}}, // the folder of the first class, which always exists
                                   .remedy =
                                       "Unpack the images into mini-imagenet, a folder for each of the 100 classes."};

expected<raw_data> load_mini_imagenet(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(mini_imagenet_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto folder = files->front().parent_path();
  const auto classes = wordnet_folders(folder);
  const auto entries = image_entries_in(classes);
  if (!entries)
    return tl::unexpected(entries.error());
  const auto both = split_by_place(*entries, [](std::size_t place) { return place >= train_files; });
  if (both.test.empty())
    return failed(folder.string(),
                  "no class has more than 500 images, so none is left for the test: fetch the data set again");
  const auto read = [&](const std::vector<image_entry>& chosen, row_limits limits) {
    return read_fitted_images(chosen, limits, std::ssize(classes), mini_imagenet_side_px, image_fit::whole);
  };
  return with_splits({.name = "mini-imagenet",
                      .classes = std::ssize(classes),
                      .class_names = folder_names(classes),
                      .mean = {0.5071, 0.4867, 0.4408}, // constants of CIFAR-100, as in the code of GLFC and LGA
                      .deviation = {0.2675, 0.2565, 0.2761}},
                     read(both.train, train_limits(data)), read(both.test, test_limits(data)));
}

const source_registration mini_imagenet_line{
    {.name = "mini-imagenet",
     .summary = "50,000 + 10,000 photographs in JPEG, scaled to color 84x84, 100 classes; the first 500 files of a "
                "class are training images; no download by mneme",
     .files = mini_imagenet_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) {
       return load_mini_imagenet(data, roots);
     }}};

} // namespace
} // namespace mneme
