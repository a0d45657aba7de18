// NICO++ Common: objects in six contexts that all classes share (Zhang et al. 2023, "NICO++: Towards Better
// Benchmarking for Domain Generalization"), one image folder per context and class: autumn/bear/x.jpg. Lists in the
// root, autumn_train.txt and autumn_test.txt with lines "autumn/bear/x.jpg 3", define split and class if they exist.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/domain_folders.hpp"
#include "runtime/data/files.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

using std::filesystem::path;

const file_set nico_common_files{
    .data_set = "nico-common",
    .folders = {"nico-common", "NICO_DG", "NICO_Common"},
    .names = {{"autumn"}, {"dim"}, {"grass"}, {"outdoor"}, {"rock"}, {"water"}},
    .remedy = "Unpack the public part of NICO++: a folder for each domain, and in it one for each class."};

expected<raw_data> load_lists(const std::vector<path>& domains, const data_section& data) {
  raw_data about{.name = "nico-common"};
  std::vector<image_list> train, test;
  for (const auto& domain : domains) {
    const auto name = domain.filename().string();
    const auto number = static_cast<std::int32_t>(about.domain_names.size());
    train.push_back({domain.parent_path() / (name + "_train.txt"), number});
    test.push_back({domain.parent_path() / (name + "_test.txt"), number});
    about.domain_names.push_back(name);
  }
  return read_domain_lists(train, test, domains.front().parent_path(), data, std::move(about));
}

/// True if at least one of the lists exists. In this case all of them are required.
bool has_lists(const std::vector<path>& domains) {
  return std::any_of(domains.begin(), domains.end(), [](const path& domain) {
    return std::filesystem::exists(domain.string() + "_train.txt") ||
           std::filesystem::exists(domain.string() + "_test.txt");
  });
}

/// Classes are numbered by name. Every domain must have all of them.
expected<raw_data> load_nico_common(const data_section& data, const std::vector<path>& roots) {
  const auto domains = find_files(nico_common_files, data, roots);
  if (!domains)
    return tl::unexpected(domains.error());
  if (has_lists(*domains))
    return load_lists(*domains, data);
  std::set<std::string> classes;
  for (const auto& domain : *domains) {
    const auto folders = folders_in(domain);
    if (!folders)
      return tl::unexpected(folders.error());
    for (const auto& folder : *folders)
      classes.insert(folder.filename().string());
  }
  raw_data about{
      .name = "nico-common", .classes = std::ssize(classes), .class_names = {classes.begin(), classes.end()}};
  std::vector<image_folder> folders;
  for (std::size_t domain = 0; domain < domains->size(); ++domain) {
    about.domain_names.push_back((*domains)[domain].filename().string());
    for (std::int32_t label = 0; const auto& name : classes)
      folders.push_back({(*domains)[domain] / name, label++, static_cast<std::int32_t>(domain)});
  }
  return read_domain_folders(folders, data, std::move(about));
}

const source_registration nico_common_line{
    {.name = "nico-common",
     .summary =
         "NICO++: images of 60 objects in 6 contexts (autumn, dim, grass, outdoor, rock, water) in JPEG or PNG, "
         "resized to data.side; every fifth image of a folder is a test image, unless lists define the split; no "
         "download by mneme",
     .files = nico_common_files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load_nico_common(data, roots); },
     .image_folders = true,
     .has_domains = true}};

} // namespace
} // namespace mneme
