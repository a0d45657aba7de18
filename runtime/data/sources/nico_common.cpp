// NICO++ Common: things in six surroundings that all classes share (Zhang et al. 2023, "NICO++: Towards Better
// Benchmarking for Domain Generalization"), a folder of pictures for each surrounding and class: autumn/bear/x.jpg.
#include "runtime/data/data_sources.hpp"
#include "runtime/data/domain_folders.hpp"
#include "runtime/data/files.hpp"
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

using std::filesystem::path;

const file_set files{.data_set = "nico-common",
                     .folders = {"nico-common", "NICO_DG", "NICO_Common"},
                     .names = {{"autumn"}, {"dim"}, {"grass"}, {"outdoor"}, {"rock"}, {"water"}},
                     .remedy =
                         "Unpack the public part of NICO++: a folder for each domain, and in it one for each class."};

/// Classes are numbered in the order of their names; every domain has to have all of them.
expected<raw_data> load(const data_section& data, const std::vector<path>& roots) {
  const auto domains = find_files(files, data, roots);
  if (!domains)
    return tl::unexpected(domains.error());
  std::set<std::string> classes;
  for (const auto& domain : *domains) {
    const auto found = folders_in(domain);
    if (!found)
      return tl::unexpected(found.error());
    for (const auto& folder : *found)
      classes.insert(folder.filename().string());
  }
  raw_data about{.name = "nico-common", .classes = std::ssize(classes)};
  std::vector<picture_folder> folders;
  for (std::size_t domain = 0; domain < domains->size(); ++domain) {
    about.domain_names.push_back((*domains)[domain].filename().string());
    for (std::int32_t label = 0; const auto& name : classes)
      folders.push_back({(*domains)[domain] / name, label++, static_cast<std::int32_t>(domain)});
  }
  return read_domain_folders(folders, data, std::move(about));
}

const source_registration line{
    {.name = "nico-common",
     .summary = "NICO++: pictures of 60 things in 6 surroundings (autumn, dim, grass, outdoor, rock, water) in JPEG or "
                "PNG, brought to data.side; every fifth of a folder is a test image; no download by mneme",
     .files = files,
     .load = [](const data_section& data, const auto& roots, std::uint64_t) { return load(data, roots); }}};

} // namespace
} // namespace mneme
