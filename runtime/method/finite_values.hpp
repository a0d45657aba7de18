/// finite_values: finds NaN and infinity in the tensors of a model.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

[[nodiscard]] bool is_finite(const at::Tensor& values);

/// The name of the first parameter with such a value in the weights [P] of a net; "" if there is none.
[[nodiscard]] std::string non_finite_parameter(const at::Tensor& weights, const model& net);

/// The name of the first tensor that holds a value which is NaN or infinite; "" if none does. A vector of all weights
/// of `net` is named by its parameter.
[[nodiscard]] std::string non_finite_tensor(const tensor_map& tensors, const model& net);

} // namespace mneme
