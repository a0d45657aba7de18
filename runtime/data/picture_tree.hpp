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
  diagnostics warnings{}; ///< Names of parts that were interpreted, and files and folders that are left out.
};

/// The folder that data.root and data.folder name.
[[nodiscard]] expected<std::filesystem::path> picture_root(const data_section& data,
                                                           const std::vector<std::filesystem::path>& roots);

/// Lists ROOT/CLASS/*.{png,jpg,jpeg}, or the same below the folders of a training and a test part (part_folders.hpp). A
/// level of folders around those of the classes are domains. Classes and domains are numbered by name. Fails if a class
/// has no images, if only one part has it, and if images or folders are at another level.
[[nodiscard]] expected<picture_tree> list_pictures(const std::filesystem::path& root);

/// A digest of the names and sizes of all pictures below the folder; a fixed one where it cannot be listed.
[[nodiscard]] digest128 names_and_sizes(const data_section& data, const std::vector<std::filesystem::path>& roots);

[[nodiscard]] own_part part_of(const std::vector<photograph>& photographs, bool has_domains);

} // namespace mneme
