/// folder_content: the entries of one folder of images, by kind.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <string>
#include <vector>
namespace mneme {

/// Entries by name, without metadata files of operating systems (.DS_Store, Thumbs.db, ...).
struct folder_content {
  std::vector<std::filesystem::path> folders{};
  std::vector<std::filesystem::path> images{};             ///< Extension of an image, and not in `unsupported_images`.
  std::vector<std::filesystem::path> unsupported_images{}; ///< Extension and content of another image format.
  std::vector<std::filesystem::path> other_files{};        ///< Extension of no image format, or hidden.
  std::vector<std::filesystem::path> ignored_folders{};    ///< Hidden, or metadata of an operating system.
};

/// Fails if the folder cannot be read.
[[nodiscard]] expected<folder_content> list_folder(const std::filesystem::path& folder);

/// The last part of the path.
[[nodiscard]] std::string folder_name(const std::filesystem::path& folder);

/// True for folders that hold no data: hidden ones (.ipynb_checkpoints) and metadata (__MACOSX, @eaDir).
[[nodiscard]] bool is_ignored_folder(const std::filesystem::path& folder);

} // namespace mneme
