/// mapped_file: arrays in large files that stay on disk. Their pages are read when rows are used, and few of them stay
/// resident.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tl/expected.hpp>
namespace mneme {

/// Arrays of at least this size in bytes are mapped; smaller ones are copied into memory.
inline constexpr std::uint64_t mapped_bytes_min = std::uint64_t{256} << 20U;

/// Maps the values of an array, read-only. The file must not change while the tensor exists: if it is shortened,
/// reading a missing page ends the process. Returns an error text if the file cannot be mapped.
/// @param first offset of the values in bytes; a multiple of the size of one value
/// @param shape the product of its extents and of the size of one value lies within the file
[[nodiscard]] tl::expected<at::Tensor, std::string> map_tensor(const std::filesystem::path& file, std::uint64_t first,
                                                               at::IntArrayRef shape, at::ScalarType type);

/// Reports that about `bytes` of mapped arrays were read. After each 128 MiB the resident pages of all mapped arrays
/// are released; the system reads them again when they are used. Thread-safe. Returns immediately if nothing is mapped.
void note_mapped_reads(std::uint64_t bytes) noexcept;

} // namespace mneme
