/// folding: uploads added to a running sum in float64, on the device that holds them.
#pragma once
#include <ATen/core/Tensor.h>
namespace mneme {

/// sum += weight * upload: one upload, in the order of the calls. On a device the host does not wait for it.
/// @param sum [P] float64, on the device of `upload` @param upload [P] float32
void fold_upload(at::Tensor& sum, const at::Tensor& upload, double weight);

/// sum / weight as float32 [P]; the sum becomes zeros. @pre weight is not 0
[[nodiscard]] at::Tensor take_mean(at::Tensor& sum, double weight);

} // namespace mneme
