/// pixel_constants: exact mean and standard deviation of the pixels of a split.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// Mean and standard deviation per channel, for pixels in [0, 1].
struct pixel_constants {
  std::vector<double> mean{}, deviation{}; ///< [C]; a deviation of 0 (all pixels equal) is replaced by 1.
};
/// Measures the constants of images. @param images [N, C, H, W] uint8 @pre at least one pixel
[[nodiscard]] pixel_constants measure_constants(const at::Tensor& images);
/// Measures mean and deviation in double precision, in row order. Images have one mean per channel; rows of numbers
/// ([N, 1, 1, F]) have one per value. @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants measure_numbers(const at::Tensor& numbers);
/// Measures the minimum (as mean) and the range (as deviation; 1 if all values are equal), grouped like
/// measure_numbers(). standardized() then maps values to [0, 1]. @param numbers [N, C, H, W] float32
[[nodiscard]] pixel_constants unit_range(const at::Tensor& numbers);
/// Returns (v - mean) / deviation for all values, in a new tensor.
[[nodiscard]] at::Tensor standardized(const at::Tensor& numbers, const pixel_constants& by);

} // namespace mneme
