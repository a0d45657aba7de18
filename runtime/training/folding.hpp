/// folding: adds uploads to a running float64 sum, on the device that holds them.
#pragma once
#include <ATen/core/Tensor.h>
#include <span>
namespace mneme {

/// An upload and its weight in a mean.
struct weighted_upload {
  at::Tensor values{}; ///< [P] float32, contiguous
  double weight = 0.0;
};

/// Throws std::invalid_argument if an upload cannot be part of a mean. The weight must be finite and above 0. The
/// upload must be contiguous float32 with as many numbers as `others`. Uploads come from other processes and from
/// checkpoints.
/// @param others another upload of the mean, or the sum so far; undefined: none
void check_upload(const at::Tensor& values, double weight, const at::Tensor& others);

/// sum = (...((sum + w_0 v_0) + w_1 v_1) ...), with the same bits as folding the uploads one by one in this order. On a
/// device the call is asynchronous. @param sum [P] float64, contiguous, on the device of the uploads
void fold_uploads(at::Tensor& sum, std::span<const weighted_upload> uploads);

/// Returns sum / weight as float32 [P] and sets the sum to zero. @pre weight is not 0
[[nodiscard]] at::Tensor take_mean(at::Tensor& sum, double weight);

/// Returns base + scale * sum as float32 [P], added in float64, and sets the sum to zero. @param base [P] float32
[[nodiscard]] at::Tensor take_moved(at::Tensor& sum, const at::Tensor& base, double scale);

} // namespace mneme
