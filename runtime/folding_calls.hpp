/// folding_calls: the folding of uploads as calls of device kernels.
#pragma once
#include "runtime/kernels/cuda/fold_upload.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

/// @param sum [P] float64 @param upload [P] float32, both contiguous on one device
[[nodiscard]] kernels::cuda::folded_upload fold_call(at::Tensor& sum, const at::Tensor& upload, double weight);
/// @param mean [P] float32, written @param sum [P] float64, both contiguous on one device
[[nodiscard]] kernels::cuda::folded_mean mean_call(at::Tensor& sum, at::Tensor& mean, double weight);

} // namespace mneme
