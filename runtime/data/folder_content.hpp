/// folder_content: the entries of one folder of images, by kind.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// Entries sorted by name. Metadata files of operating systems (.DS_Store, Thumbs.db, ...) are omitted.
struct folder_content {
  std::vector<std::filesystem::path> folders{};
  std::vector<std::filesystem::path> images{};             ///< PNG and JPEG files, by extension or content.
  std::vector<std::filesystem::path> unsupported_images{}; ///< Images in other formats.
  std::vector<std::filesystem::path> other_files{};     ///< Hidden files, and files without the extension of an image.
  std::vector<std::filesystem::path> ignored_folders{}; ///< Hidden folders, and metadata folders of operating systems.
};

/// Lists the entries of a folder by kind. Fails if the folder cannot be read.
[[nodiscard]] expected<folder_content> list_folder(const std::filesystem::path& folder);

/// The last component of the path.
[[nodiscard]] std::string folder_name(const std::filesystem::path& folder);

/// True for folders without data: hidden ones (.ipynb_checkpoints) and metadata (__MACOSX, @eaDir).
[[nodiscard]] bool is_ignored_folder(const std::filesystem::path& folder);

} // namespace mneme
