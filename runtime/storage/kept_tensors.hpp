/// kept_tensors: tensors that one run leaves for others, in a file that says whether they are still the same.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include <filesystem>
namespace mneme {

/// Writes a safetensors file, whole or not at all, whose metadata hold a digest of its name, its tensors, and their
/// names, dtypes and shapes. Throws std::system_error naming the file.
void keep_tensors(const std::filesystem::path& file, const tensor_map& tensors);

/// Reads one back. Fails where it cannot be read, and where its digest is missing or another one: then the file has
/// been damaged, or has taken another one's place, and whoever needs it makes it again.
[[nodiscard]] expected<tensor_map> read_kept_tensors(const std::filesystem::path& file);

} // namespace mneme
