/// folding: uploads added to a running sum in float64, on the device that holds them.
#pragma once
#include <ATen/core/Tensor.h>
#include <span>
namespace mneme {

struct weighted_upload {
  at::Tensor values{}; ///< [P] float32, contiguous
  double weight = 0.0;
};

/// Throws std::invalid_argument where an upload cannot be part of a mean: its weight is not a number above 0, or it is
/// not contiguous float32 of as many numbers as the others. Uploads come from other processes and from checkpoints.
/// @param others what it is averaged with, or their sum; undefined: nothing yet
void check_upload(const at::Tensor& values, double weight, const at::Tensor& others);

/// sum = (...((sum + w_0 v_0) + w_1 v_1) ...): the bits of folding one upload after the other, in the order given.
/// On a device the host does not wait for it. @param sum [P] float64, contiguous, where the uploads are
void fold_uploads(at::Tensor& sum, std::span<const weighted_upload> uploads);

/// sum / weight as float32 [P]; the sum becomes zeros. @pre weight is not 0
[[nodiscard]] at::Tensor take_mean(at::Tensor& sum, double weight);

/// base + scale * sum as float32 [P], added in float64; the sum becomes zeros. @param base [P] float32, beside the sum
[[nodiscard]] at::Tensor take_moved(at::Tensor& sum, const at::Tensor& base, double scale);

} // namespace mneme
