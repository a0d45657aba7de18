/// folding_calls: the folding of uploads as calls of device kernels.
#pragma once
#include "runtime/kernels/cuda/fold_uploads.hpp"
#include "runtime/training/folding.hpp"
namespace mneme {

/// @param sum [P] float64 @param uploads at most uploads_max; each [P] float32, contiguous as the sum is, on one device
[[nodiscard]] kernels::cuda::folded_uploads fold_call(at::Tensor& sum, std::span<const weighted_upload> uploads);
/// @param mean [P] float32, written @param sum [P] float64, both contiguous on one device
[[nodiscard]] kernels::cuda::folded_mean mean_call(at::Tensor& sum, at::Tensor& mean, double weight);

} // namespace mneme
