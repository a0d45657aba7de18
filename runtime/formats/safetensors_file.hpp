/// safetensors_file: reads and writes named tensors in the safetensors format.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// Strings by name that a file contains in addition to tensors ("__metadata__").
using safetensors_metadata = std::map<std::string, std::string>;

/// Accepted dtypes. `of_nets`: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL. `all`: the same, and U64, U32 and U16.
enum class safetensors_types : std::uint8_t { of_nets, all };

struct safetensors_options {
  safetensors_types types = safetensors_types::of_nets;
  /// Tensors of at least this size in bytes stay in the file (map_tensor). Others, and all BOOL tensors, are copied.
  std::uint64_t mapped_bytes_min = std::numeric_limits<std::uint64_t>::max();
};

/// Returns the content of a file with the metadata, if there are any, and the tensors in name order. The header is
/// padded to a multiple of 8 bytes. GPU tensors are copied to the host. Equal maps give equal bytes.
/// @pre dtypes are among F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL, and no name is "__metadata__"
[[nodiscard]] std::vector<std::byte> safetensors_bytes(const tensor_map& tensors,
                                                       const safetensors_metadata& texts = {});

/// Reads a file. Returns all errors with byte offsets on failure. Before memory is allocated, sizes are checked against
/// the file size, and tensors that are copied also against the available memory. @param texts receives those metadata
/// entries that are strings; null: metadata are skipped
[[nodiscard]] expected<tensor_map> read_safetensors(const std::filesystem::path& file,
                                                    safetensors_metadata* texts = nullptr,
                                                    const safetensors_options& options = {});

} // namespace mneme
