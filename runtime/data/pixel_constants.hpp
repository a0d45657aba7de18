/// pixel_constants: mean and standard deviation of the pixels of a split, computed exactly.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// Per channel, of pixels in [0, 1].
struct pixel_constants {
  std::vector<double> mean{}, deviation{}; ///< [C]; a deviation of 0 (all pixels equal) is stored as 1.
};
/// @param images [N, C, H, W] uint8 @pre at least one pixel
[[nodiscard]] pixel_constants measured_constants(const at::Tensor& images);
/// Mean and deviation in double, in row order: per channel of images, or per value for rows without a plane ([N, 1, 1,
/// F]).
/// @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants measured_numbers(const at::Tensor& numbers);
/// Minimum as mean and range as deviation (1 if all values are equal), grouped as in measured_numbers(): standardised()
/// with them maps the values to [0, 1].
/// @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants unit_range(const at::Tensor& numbers);
/// Returns a new tensor with (v - mean) / deviation.
[[nodiscard]] at::Tensor standardised(const at::Tensor& numbers, const pixel_constants& by);

} // namespace mneme
