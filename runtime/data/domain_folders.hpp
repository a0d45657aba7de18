/// domain_folders: reads data sets with image folders by domain and class.
#pragma once
#include "runtime/data/image_lists.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// The folders in `folder`, sorted by name. Fails if there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_in(const std::filesystem::path& folder);

/// The images of one class in one domain.
struct image_folder {
  std::filesystem::path folder{};
  std::int32_t label = 0, domain = 0;
};

/// Reads a data set without an official split. In each folder, every fifth image by name (numbers 4, 9, 14, ...) is a
/// test row; the others are training rows. Folders without images and unreadable images are errors.
/// @param about name, classes and domains of the data set
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<image_folder>& folders, const data_section& data,
                                                     raw_data about);
/// Reads a data set with an official split. @param about name, classes and domains of the data set
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<image_folder>& train,
                                                     const std::vector<image_folder>& test, const data_section& data,
                                                     raw_data about);
/// Reads the images that the lists name. The labels determine the number of classes; each label needs a training row.
[[nodiscard]] expected<raw_data> read_domain_lists(const std::vector<image_list>& train,
                                                   const std::vector<image_list>& test,
                                                   const std::filesystem::path& folder, const data_section& data,
                                                   raw_data about);

} // namespace mneme
