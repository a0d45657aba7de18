/// domain_folders: data sets of pictures in folders by domain and class.
#pragma once
#include "runtime/data/picture_lists.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Folders below `folder`, by name; a diagnostic where there are none.
[[nodiscard]] expected<std::vector<std::filesystem::path>> folders_in(const std::filesystem::path& folder);

/// The pictures of one class in one domain.
struct picture_folder {
  std::filesystem::path folder{};
  std::int32_t label = 0, domain = 0;
};

/// Every fifth picture of a folder in the order of names, numbers 4, 9, 14, .., is a test row, the others are training
/// rows: for data sets without a split of their own. A folder without pictures, and each picture that cannot be read,
/// is a diagnostic. @param about name, classes and domains
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<picture_folder>& folders,
                                                     const data_section& data, raw_data about);
/// The same for data sets that come with a split.
[[nodiscard]] expected<raw_data> read_domain_folders(const std::vector<picture_folder>& train,
                                                     const std::vector<picture_folder>& test, const data_section& data,
                                                     raw_data about);
/// The same for pictures that lists name; classes are counted from the labels, each of which needs a training row.
[[nodiscard]] expected<raw_data> read_domain_lists(const std::vector<picture_list>& train,
                                                   const std::vector<picture_list>& test,
                                                   const std::filesystem::path& folder, const data_section& data,
                                                   raw_data about);

} // namespace mneme
