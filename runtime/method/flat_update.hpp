/// flat_update: converts an upload to one vector (its difference from the broadcast weights), and back.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Returns w_k - w for all float32 tensors that both maps contain with equal sizes, concatenated in the order of their
/// names.
[[nodiscard]] std::vector<double> flat_update(const tensor_map& upload, const tensor_map& weights);
/// Returns the upload with w + update in the tensors that flat_update() reads. Their devices and shapes stay the same.
/// The sum is rounded to float32 once. Other tensors stay as they are.
[[nodiscard]] tensors_ref with_update(const tensor_map& upload, const tensor_map& weights,
                                      const std::vector<double>& update);
/// Returns the float32 values of the tensors that flat_update() reads, concatenated in the order of their names.
[[nodiscard]] std::vector<float> flat_values(const tensor_map& upload, const tensor_map& weights);
/// Returns the upload with `values` in the tensors that flat_update() reads. @pre values.size() == flat_values(upload,
/// weights).size()
[[nodiscard]] tensors_ref with_values(const tensor_map& upload, const tensor_map& weights,
                                      const std::vector<float>& values);
/// Name of the first tensor of the upload that flat_update() omits; "" if there is none.
[[nodiscard]] std::string tensor_without_weights(const tensor_map& upload, const tensor_map& weights);

} // namespace mneme
