/// parameters: converts between flat weights and named tensors in files.
#pragma once
#include "runtime/formats/safetensors_file.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

/// Tensor names of a ridge readout and its projection in model.safetensors; they are not parameters of a net.
inline constexpr const char *projection_name = "W_R", *readout_name = "readout.weight";

/// Tensors of the flat weights [P], under the names of the net's parameters.
[[nodiscard]] tensor_map named_parameters(const model& net, const at::Tensor& flat);

/// Returns flat weights [P] float32 on the CPU. Fails if a tensor is missing, unknown, misshapen, not floating-point or
/// not finite; errors name the tensor and `file`. If `others_from` [P] is given, it replaces a head that is missing or
/// has other classes, and missing adapters of a frozen body.
[[nodiscard]] expected<at::Tensor> flat_parameters(const model& net, const tensor_map& named, const std::string& file,
                                                   const at::Tensor* others_from);

} // namespace mneme
