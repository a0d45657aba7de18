/// winograd: convolutions of 3 x 3 and stride 1 by Winograd's algorithm (Winograd 1980). LibTorch computes all others.
#pragma once
#include "runtime/kernels/scratch.hpp"
namespace mneme::kernels {

/// A convolution with square kernels, zero padding and one stride, all in pixels. All tensors are float32. Images are
/// [rows, height, width, channels], filters [kernel, kernel, channels, filters], results
/// [rows, out_height, out_width, filters].
struct conv_shape {
  std::int64_t rows = 0; ///< Number of images.
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
  [[nodiscard]] std::int64_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  [[nodiscard]] std::int64_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  /// Number of terms of one result.
  [[nodiscard]] std::int64_t terms() const { return kernel * kernel * channels; }
};

/// True if the functions below support this shape and are faster than oneDNN, for any number of images.
[[nodiscard]] bool winograd_pays(const conv_shape& shape);

// @pre winograd_pays(shape). The bits of an image's results do not depend on the other images.

/// Convolution y = x * w + bias, followed by ReLU if `relu`. `bias` [filters] may be null.
void winograd_convolve(const conv_shape& shape, const float* x, const float* w, const float* bias, bool relu, float* y,
                       scratch& memory);
/// Gradient of the input: dx = dy * (w rotated by 180 degrees); if `add`, it is added to dx.
void winograd_convolve_back(const conv_shape& shape, const float* dy, const float* w, float* dx, bool add,
                            scratch& memory);
/// Gradient of the filters: dw = scale * (patches of x)^T dy; if `add`, it is added to dw.
void winograd_correlate(const conv_shape& shape, const float* x, const float* dy, float* dw, float scale, bool add,
                        scratch& memory);

} // namespace mneme::kernels
