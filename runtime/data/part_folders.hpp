/// part_folders: finds the training and test parts of an image folder by folder names.
#pragma once
#include "runtime/data/folder_content.hpp"
#include <string_view>
namespace mneme {

enum class part_role : std::uint8_t { none, train, validation, test };

/// Derives the role of a folder from its name, ignoring case. Examples: train, Training, training_set; val, valid,
/// validation; test, Testing, eval. Returns `none` for other names.
[[nodiscard]] part_role part_role_of(std::string_view folder_name);

/// The folders of both parts.
struct part_folders {
  std::filesystem::path train{}; ///< Holds the class or domain folders.
  std::filesystem::path test{};  ///< Empty if there is no test part.
  diagnostics warnings{};        ///< Warnings about interpreted names and ignored folders.
};

/// Finds the parts of `root`. Without parts, `train` is `root` itself. A validation part replaces a missing test part.
/// Fails if there is a test part but no training part, or if two folders have the same role.
/// @param content entries of `root`
[[nodiscard]] expected<part_folders> find_parts(const std::filesystem::path& root, const folder_content& content);

} // namespace mneme
