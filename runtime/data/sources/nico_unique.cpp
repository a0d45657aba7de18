// NICO++ Unique: objects in six contexts specific to each class (Zhang et al. 2023, "NICO++"), one image folder per
// class and context: bear/on_tree/x.jpg. Domain i is the i-th context of each class by name. Lists in the class folder,
// bear/on_tree_train.txt and bear/on_tree_test.txt with lines "bear/on_tree/x.jpg 0", define split and class if they
// exist.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/domain_folders.hpp"
#include "runtime/data/files.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

using std::filesystem::path;

const file_set nico_unique_files{
    .data_set = "nico-unique",
    .folders = {"nico-unique", "NICO_Unique", "NICO_unique"},
    .names = {{"bear"}}, // folder of a class that identifies the data set
    .remedy = "Unpack the unique part of NICO++: a folder for each class, and in it one for each domain."};

/// Classes are numbered by name.
expected<raw_data> load_nico_unique(const data_section& data, const std::vector<path>& roots) {
  const auto files = find_files(nico_unique_files, data, roots);
  if (!files)
    return tl::unexpected(files.error());
  const auto classes = folders_in(files->front().parent_path());
  if (!classes)
    return tl::unexpected(classes.error());
  raw_data about{.name = "nico-unique", .classes = std::ssize(*classes)};
  std::vector<image_folder> folders;
  std::vector<image_list> train, test;
  bool has_lists = false; // true: a list exists, so all are required
  for (std::size_t label = 0; label < classes->size(); ++label) {
    const auto& folder = (*classes)[label];
    const auto domains = folders_in(folder);
    if (!domains)
      return tl::unexpected(domains.error());
    if (label == 0)
      for (std::size_t domain = 0; domain < domains->size(); ++domain)
        about.domain_names.push_back("surroundings " + std::to_string(domain + 1));
    if (domains->size() != about.domain_names.size())
      return failed(folder.string(),
                    fmt::format("holds {0} folders, but class {2} has {1}; expected as many domains of each class: "
                                "fetch the data set again",
                                domains->size(), about.domain_names.size(), classes->front().filename().string()));
    for (std::size_t domain = 0; domain < domains->size(); ++domain) {
      const auto number = static_cast<std::int32_t>(domain);
      folders.push_back({(*domains)[domain], static_cast<std::int32_t>(label), number});
      train.push_back({(*domains)[domain].string() + "_train.txt", number});
      test.push_back({(*domains)[domain].string() + "_test.txt", number});
      has_lists |= std::filesystem::exists(train.back().file) || std::filesystem::exists(test.back().file);
    }
  }
  if (has_lists) {
    about.classes = 0; // the labels determine the number
    return read_domain_lists(train, test, files->front().parent_path(), data, std::move(about));
  }
  about.class_names = folder_names(*classes);
  return read_domain_folders(folders, data, std::move(about));
}

const source_registration nico_unique_line{
    {.name = "nico-unique",
     .summary = "NICO++: images of 60 objects, each in 6 contexts of its own, in JPEG or PNG, resized to data.side; "
                "every fifth image of a folder is a test image, unless lists define the split; no download by mneme",
     .files = nico_unique_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_nico_unique(data, roots); },
     .image_folders = true,
     .has_domains = true}};

} // namespace
} // namespace mneme
