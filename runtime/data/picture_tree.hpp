/// picture_tree: a user's folder of pictures, by part, domain and class, before a picture is read.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/data/own_rows.hpp"
#include "runtime/data/photographs.hpp"
namespace mneme {

struct picture_tree {
  std::filesystem::path root{};
  std::vector<photograph> train{}, test{}; ///< By domain, class and name, as torchvision's ImageFolder has them.
  own_classes classes{};
};

/// The folder that data.root and data.folder name.
[[nodiscard]] expected<std::filesystem::path> picture_root(const data_section& data,
                                                           const std::vector<std::filesystem::path>& roots);

/// Lists ROOT/CLASS/*.{png,jpg,jpeg}, or ROOT/train and ROOT/test of such; with a folder for each domain around those
/// of the classes where there are domains. Classes and domains are numbered by name. Whatever does not belong there is
/// a diagnostic: a class without pictures, one that only a part has, a picture beside folders, a picture of another
/// kind.
[[nodiscard]] expected<picture_tree> list_pictures(const std::filesystem::path& root);

/// A digest of the names and sizes of all pictures below the folder; a fixed one where it cannot be listed.
[[nodiscard]] digest128 names_and_sizes(const data_section& data, const std::vector<std::filesystem::path>& roots);

[[nodiscard]] own_part part_of(const std::vector<photograph>& photographs, bool has_domains);

} // namespace mneme
