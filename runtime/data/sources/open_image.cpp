// OpenImage in the layout of OSCAR's public code: 20 categories with six subcategories each, which are used as domains.
// One folder per split, subcategory and category: train/client_0/17/x.jpg.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/domain_folders.hpp"
#include "runtime/data/files.hpp"
#include "runtime/data/splits.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

using std::filesystem::path;

constexpr std::int32_t open_image_domains = 6, open_image_classes = 20;

const file_set open_image_files{.data_set = "open-image",
                                .folders = {"open-image", "OpenImage", "openimage"},
                                .names = {{"train/client_0"}, {"test/client_0"}},
                                .remedy = "Store the images as {train,test}/client_{0..5}/{0..19}/."};

std::vector<image_folder> folders_of(const path& split) {
  std::vector<image_folder> folders;
  for (std::int32_t domain = 0; domain < open_image_domains; ++domain)
    for (std::int32_t label = 0; label < open_image_classes; ++label)
      folders.push_back({split / fmt::format("client_{}", domain) / std::to_string(label), label, domain});
  return folders;
}

expected<raw_data> load_open_image(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(open_image_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  raw_data about{.name = "open-image", .classes = open_image_classes};
  for (std::int32_t domain = 0; domain < open_image_domains; ++domain)
    about.domain_names.push_back(fmt::format("client_{}", domain));
  return read_domain_folders(folders_of(files->front().parent_path()), folders_of(files->back().parent_path()), data,
                             std::move(about));
}

const source_registration open_image_line{
    {.name = "open-image",
     .summary = "OpenImage: images of 20 categories with 6 subcategories each as domains, in JPEG or PNG, resized to "
                "data.side; layout of OSCAR's code; no download by mneme",
     .files = open_image_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_open_image(data, roots); },
     .image_folders = true,
     .has_domains = true}};

} // namespace
} // namespace mneme
