/// pixel_normalisation: from rows as nets see them back to pixels.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// What the run's data have done to pixels, by channel: row = pixel * scale + shift, pixels in 0 .. 255.
struct pixel_normalisation {
  std::vector<float> scale{}, shift{}; ///< [C]

  /// @param rows [n, C, H, W]; no gradient flows back to them @return pixels in [0, 1], where `rows` are
  [[nodiscard]] at::Tensor pixels_of(const at::Tensor& rows) const;
};

} // namespace mneme
