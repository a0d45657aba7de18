/// parameters: conversion between flat weights and named tensors in files.
#pragma once
#include "runtime/formats/safetensors_file.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

/// Names of a ridge read-out and its projection in model.safetensors; not parameters of a net.
inline constexpr const char *projection_name = "W_R", *readout_name = "readout.weight";

/// Views of the flat weights [P], under the names of the net's parameters.
[[nodiscard]] tensor_map named_parameters(const model& net, const at::Tensor& flat);

/// Returns flat weights [P] float32 on the CPU. Fails on a missing, extra, misshapen, integer or non-finite tensor,
/// with its name and `file`. With `others_from` [P], the head may be missing or of other classes, and adapters of a
/// frozen body may be missing: these are taken from it.
[[nodiscard]] expected<at::Tensor> flat_parameters(const model& net, const tensor_map& named, const std::string& file,
                                                   const at::Tensor* others_from);

} // namespace mneme
