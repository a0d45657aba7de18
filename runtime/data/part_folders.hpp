/// part_folders: finds the training and the test part of a folder of images by the names of its folders.
#pragma once
#include "runtime/data/folder_content.hpp"
#include <string_view>
namespace mneme {

enum class part_role : std::uint8_t { none, train, validation, test };

/// The part that a folder of this name holds by custom, in any case: train, Training, training_set; val, valid,
/// validation; test, Testing, eval. `none` for any other name.
[[nodiscard]] part_role part_role_of(std::string_view folder_name);

/// The folders of both parts.
struct part_folders {
  std::filesystem::path train{}; ///< Holds the folders of classes or domains.
  std::filesystem::path test{};  ///< Empty if there is no test part.
  diagnostics warnings{};        ///< Names that were interpreted, and folders that are left out.
};

/// Chooses the parts of `root`; `train` is `root` itself if it has none. A validation part is the test part if there is
/// no other one. Fails if there is a test part and no training part, or if two folders are the same part.
/// @param content of root
[[nodiscard]] expected<part_folders> find_parts(const std::filesystem::path& root, const folder_content& content);

} // namespace mneme
