/// folding_calls: arguments of the device kernels that fold uploads.
#pragma once
#include "runtime/kernels/cuda/fold_uploads.hpp"
#include "runtime/training/folding.hpp"
namespace mneme {

/// Arguments for folding uploads into a sum. @param sum [P] float64, contiguous
/// @param uploads at most uploads_max, each contiguous float32 [P] on the sum's device
[[nodiscard]] kernels::cuda::folded_uploads fold_call(at::Tensor& sum, std::span<const weighted_upload> uploads);
/// Arguments for mean = sum / weight. @param sum [P] float64 @param mean [P] float32, the result; both contiguous on
/// one device
[[nodiscard]] kernels::cuda::folded_mean mean_call(at::Tensor& sum, at::Tensor& mean, double weight);

} // namespace mneme
