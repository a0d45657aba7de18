/// kept_tensors: cached tensors that runs share, in files with a digest.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include <filesystem>
namespace mneme {

/// Writes a safetensors file atomically. Its metadata contain a digest of its name and its tensors with names, dtypes
/// and shapes. Throws std::system_error with the file name.
void keep_tensors(const std::filesystem::path& file, const tensor_map& tensors);

/// Reads such a file. Fails if it cannot be read, or if its digest is missing or wrong: it was damaged or replaced, and
/// the caller computes the tensors again.
[[nodiscard]] expected<tensor_map> read_kept_tensors(const std::filesystem::path& file);

} // namespace mneme
