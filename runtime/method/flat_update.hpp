/// flat_update: the update of an upload as one vector, and back.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <string>
#include <vector>
namespace mneme {

/// w_k - w of the float32 tensors that both maps hold with equal sizes, one after the other by name.
[[nodiscard]] std::vector<double> flat_update(const tensor_map& upload, const tensor_map& weights);
/// The upload with w + update in place of these tensors, on their devices and in their shapes. Returned to float32 by
/// one cast. Other tensors are kept.
[[nodiscard]] tensors_ref with_update(const tensor_map& upload, const tensor_map& weights,
                                      const std::vector<double>& update);
/// The float32 values of these tensors, one after the other by name.
[[nodiscard]] std::vector<float> flat_values(const tensor_map& upload, const tensor_map& weights);
/// The upload with `values` in place of these tensors. @pre values.size() == flat_values(upload, weights).size()
[[nodiscard]] tensors_ref with_values(const tensor_map& upload, const tensor_map& weights,
                                      const std::vector<float>& values);
/// Name of the first tensor of the upload that is not one of these, or "".
[[nodiscard]] std::string tensor_without_weights(const tensor_map& upload, const tensor_map& weights);

} // namespace mneme
