/// finite_values: finds NaN and infinite values in a model's tensors.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

/// True if no value is NaN or infinite. Always true for integers.
[[nodiscard]] bool is_finite(const at::Tensor& values);

/// Name of the first parameter of `net` with a NaN or infinite value; "" if there is none. @param weights [P]
[[nodiscard]] std::string non_finite_parameter(const at::Tensor& weights, const model& net);

/// Name of the first tensor with a NaN or infinite value; "" if there is none. For flat weights of `net`, returns the
/// name of the parameter.
[[nodiscard]] std::string non_finite_tensor(const tensor_map& tensors, const model& net);

} // namespace mneme
