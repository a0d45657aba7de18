/// image_tree: lists a user's image folder by part, domain and class, without reading images.
#pragma once
#include "runtime/base/digest.hpp"
#include "runtime/data/image_entries.hpp"
#include "runtime/data/user_rows.hpp"
namespace mneme {

struct image_tree {
  std::filesystem::path root{};
  std::vector<image_entry> train{}, test{}; ///< Sorted by domain, class and name, as in torchvision's ImageFolder.
  user_classes classes{};
  diagnostics warnings{}; ///< Warnings about interpreted names of parts, and ignored files and folders.
};

/// The folder that data.root and data.folder name. Fails if it does not exist.
[[nodiscard]] expected<std::filesystem::path> image_root(const data_section& data,
                                                         const std::vector<std::filesystem::path>& roots);

/// Lists ROOT/CLASS/*.{png,jpg,jpeg}, or the same below the folders of a training and a test part (part_folders.hpp).
/// An additional folder level above the classes defines domains. Classes and domains are numbered by name. Fails if a
/// class has no images or is missing in a part, or if images or folders are at different levels.
[[nodiscard]] expected<image_tree> list_images(const std::filesystem::path& root);

/// Digest of the names and sizes of all images in the folder. Returns a constant if the folder cannot be listed.
[[nodiscard]] digest128 names_and_sizes(const data_section& data, const std::vector<std::filesystem::path>& roots);

/// The labels of the images, and their domains if `has_domains`.
[[nodiscard]] user_part part_of(const std::vector<image_entry>& entries, bool has_domains);

} // namespace mneme
