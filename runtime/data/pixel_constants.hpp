/// pixel_constants: mean and deviation of the pixels of a split, counted exactly.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// What pixels in [0, 1] have, per channel.
struct pixel_constants {
  std::vector<double> mean{}, deviation{}; ///< [C]; a deviation of 0, of pixels that are all alike, is given as 1.
};
/// @param images [N, C, H, W] uint8 @pre at least one pixel
[[nodiscard]] pixel_constants measured_constants(const at::Tensor& images);
/// The same of numbers, in double, row after row: per channel of images, per number of rows without a plane ([N, 1, 1,
/// F]).
/// @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants measured_numbers(const at::Tensor& numbers);
/// The smallest number as mean, and the range of the numbers (1 where all are equal) as deviation, grouped as in
/// measured_numbers(): standardised() by them brings the numbers to [0, 1].
/// @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants unit_range(const at::Tensor& numbers);
/// (v - mean) / deviation of each number by the constants of its place, in a tensor of its own.
[[nodiscard]] at::Tensor standardised(const at::Tensor& numbers, const pixel_constants& by);

} // namespace mneme
