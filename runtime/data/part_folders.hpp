/// part_folders: finds the training and test part of an image folder by folder names.
#pragma once
#include "runtime/data/folder_content.hpp"
#include <string_view>
namespace mneme {

enum class part_role : std::uint8_t { none, train, validation, test };

/// Role of a folder by its name, case-insensitive: train, Training, training_set; val, valid, validation; test,
/// Testing, eval. `none` for other names.
[[nodiscard]] part_role part_role_of(std::string_view folder_name);

/// The folders of both parts.
struct part_folders {
  std::filesystem::path train{}; ///< Holds the class or domain folders.
  std::filesystem::path test{};  ///< Empty if there is no test part.
  diagnostics warnings{};        ///< Names that were interpreted, and folders that are ignored.
};

/// Chooses the parts of `root`; `train` is `root` itself if it has no parts. Without a test part, a validation part
/// replaces it. Fails if there is a test part but no training part, or if two folders have the same role.
/// @param content of root
[[nodiscard]] expected<part_folders> find_parts(const std::filesystem::path& root, const folder_content& content);

} // namespace mneme
