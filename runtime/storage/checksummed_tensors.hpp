/// checksummed_tensors: tensors cached in files that several runs share, each with a digest.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include <filesystem>
namespace mneme {

/// Writes a safetensors file atomically. Its metadata contain a digest of the file name and of the tensors' names,
/// dtypes, shapes and contents. Throws std::system_error with the file name.
void write_checksummed_tensors(const std::filesystem::path& file, const tensor_map& tensors);

/// Reads a file of write_checksummed_tensors(). Fails if the file is unreadable, or if its digest shows that it was
/// damaged or replaced. The caller then computes the tensors again.
[[nodiscard]] expected<tensor_map> read_checksummed_tensors(const std::filesystem::path& file);

} // namespace mneme
