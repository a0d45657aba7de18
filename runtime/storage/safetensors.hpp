/// safetensors: named tensors as a file that other programs read, and the weights of a net in it.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>
namespace mneme {

/// Texts by name that a file holds beside its tensors ("__metadata__").
using safetensors_metadata = std::map<std::string, std::string>;

/// The content of a file: tensors in name order, header padded to 8 bytes, metadata where there are any. Tensors on a
/// GPU are copied to the host. Equal maps give equal bytes.
/// @pre dtypes are among F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL; no name is "__metadata__"
[[nodiscard]] std::vector<std::byte> safetensors_bytes(const tensor_map& tensors,
                                                       const safetensors_metadata& texts = {});

/// Reads one back. All that is wrong is found at once, each diagnostic with its byte in the file; sizes are checked
/// against the file before memory is taken.
/// @param texts gets the metadata, of which those that are no texts are left out; null: they are skipped
[[nodiscard]] expected<tensor_map> read_safetensors(const std::filesystem::path& file,
                                                    safetensors_metadata* texts = nullptr);

/// The names of a ridge read-out and its projection in model.safetensors: no parameters of a net.
inline constexpr const char *projection_name = "W_R", *readout_name = "readout.weight";

/// Views of the flat weights [P] under the names of the net's parameters.
[[nodiscard]] tensor_map named_parameters(const model& net, const at::Tensor& flat);

/// And back: flat weights [P] float32 on the CPU. Fails on any missing, extra, misshapen, integer or
/// non-finite tensor, naming it and `file`. With `others_from` [P] the head may be absent from `named`,
/// or made for other classes, and adapters beside a frozen body may be absent: then all of it is taken from there.
[[nodiscard]] expected<at::Tensor> flat_parameters(const model& net, const tensor_map& named, const std::string& file,
                                                   const at::Tensor* others_from);

} // namespace mneme
