/// domain_folders: reads data sets with image folders by domain and class.
#pragma once
#include "runtime/data/picture_lists.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Folders below `folder`, by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_in(const std::filesystem::path& folder);

/// The images of one class in one domain.
struct picture_folder {
  std::filesystem::path folder{};
  std::int32_t label = 0, domain = 0;
};

/// Reads data sets without an official split: every fifth image of a folder by name (numbers 4, 9, 14, ...) is a test
/// row, the others are training rows. A folder without images and each unreadable image is a diagnostic. @param about
/// name, classes and domains
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<picture_folder>& folders,
                                                     const data_section& data, raw_data about);
/// Reads data sets with an official split.
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<picture_folder>& train,
                                                     const std::vector<picture_folder>& test, const data_section& data,
                                                     raw_data about);
/// Reads images named by lists. The number of classes follows from the labels; each label needs a training row.
[[nodiscard]] expected<raw_data> read_domain_lists(const std::vector<picture_list>& train,
                                                   const std::vector<picture_list>& test,
                                                   const std::filesystem::path& folder, const data_section& data,
                                                   raw_data about);

} // namespace mneme
