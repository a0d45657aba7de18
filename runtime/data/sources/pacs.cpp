// PACS: photographs, paintings, cartoons and sketches of seven classes (Li, Yang, Song, Hospedales 2017) at 32x32, in
// records like those of CIFAR-100: domain, class, pixels.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/records.hpp"
#include "runtime/data/splits.hpp"
#include <array>
namespace mneme {
namespace {

const file_set pacs_files{.data_set = "pacs",
                          .folders = {"pacs-32", "pacs"},
                          .names = {{"pacs32.bin"}},
                          .remedy =
                              "There is no public download at this size: write one record for each image (domain byte "
                              "in the order photo, art_painting, cartoon, sketch; class byte in the order dog, "
                              "elephant, giraffe, guitar, horse, house, person; planes R, G, B of 32x32 bytes)."};
const record_layout pacs_layout{.label_bytes = 2, .label_at = 1, .classes = 7, .domain_at = 0, .domains = 4};

/// The file has no official split. Every fifth record of each domain and class in file order (numbers 4, 9, 14, ...) is
/// a test row.
raw_data split(const image_table& images, raw_data about) {
  std::array<std::array<std::int64_t, 7>, 4> counts{}; // [domain, class]
  std::vector<std::int64_t> train, test;
  for (std::size_t row = 0; row < images.labels.size(); ++row) {
    auto& before = counts[static_cast<std::size_t>(images.domains[row])][static_cast<std::size_t>(images.labels[row])];
    (before++ % 5 == 4 ? test : train).push_back(static_cast<std::int64_t>(row));
  }
  about.train = selected(images, train);
  about.test = selected(images, test);
  return about;
}

expected<raw_data> load_pacs(const data_section& data, const std::vector<std::filesystem::path>& roots) {
  const auto files = find_files(pacs_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto images = read_records(*files, pacs_layout, {});
  if (!images)
    return tl::unexpected(images.error());
  return split(*images, {.name = "pacs",
                         .classes = pacs_layout.classes,
                         .domain_names = {"photo", "art_painting", "cartoon", "sketch"},
                         .mean = {0.5, 0.5, 0.5},
                         .deviation = {0.5, 0.5, 0.5}});
}

const source_registration pacs_line{
    {.name = "pacs",
     .summary = "8,003 + 1,988 images in 4 domains (photo, art_painting, cartoon, sketch), color 32x32, 7 classes; "
                "row limits apply per domain; no public download",
     .files = pacs_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_pacs(data, roots); },
     .has_domains = true}};

} // namespace
} // namespace mneme
