/// safetensors_file: named tensors as a file that other programs read and write.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// Texts by name that a file holds beside its tensors ("__metadata__").
using safetensors_metadata = std::map<std::string, std::string>;

/// The dtypes that are read: those that nets have (F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL), or U64, U32 and U16, too.
enum class safetensors_types : std::uint8_t { of_nets, all };

/// The content of a file: tensors in name order, header padded to 8 bytes, metadata where there are any. Tensors on a
/// GPU are copied to the host. Equal maps give equal bytes.
/// @pre dtypes are among F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL; no name is "__metadata__"
[[nodiscard]] std::vector<std::byte> safetensors_bytes(const tensor_map& tensors,
                                                       const safetensors_metadata& texts = {});

/// Reads one back. All that is wrong is found at once, each diagnostic with its byte in the file; sizes are checked
/// against the file before memory is taken.
/// @param texts gets the metadata, of which those that are no texts are left out; null: they are skipped
[[nodiscard]] expected<tensor_map> read_safetensors(const std::filesystem::path& file,
                                                    safetensors_metadata* texts = nullptr,
                                                    safetensors_types types = safetensors_types::of_nets);

} // namespace mneme
