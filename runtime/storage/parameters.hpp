/// parameters: the weights of a net in a file of named tensors.
#pragma once
#include "runtime/formats/safetensors_file.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

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
