#include "runtime/models/depthwise_layer.hpp"
#include "runtime/base/ceil_div.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/stack.h>
#include <algorithm>
namespace mneme {
namespace {

// Axes: K models, B rows of a step; an image [height, width, channels], filters [kernel, kernel, channels].

constexpr double ceiling = 6.0;

/// Model k's images in LibTorch's order: [B, channels, height, width].
at::Tensor images_of(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k].view({whole.size(1), image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

/// Filters in LibTorch's order: [channels, 1, kernel, kernel].
at::Tensor filters_of(const at::Tensor& flat, std::int64_t kernel) {
  return flat.view({kernel, kernel, -1, 1}).permute({2, 3, 0, 1});
}

} // namespace

std::array<std::int64_t, 2> depthwise_layer::padding_of(std::int64_t extent, std::int64_t kernel, std::int64_t stride) {
  const auto windows = ceil_div(extent, stride);
  const auto zeros = std::max<std::int64_t>((windows - 1) * stride + kernel - extent, 0);
  return {zeros / 2, zeros - zeros / 2};
}

image_shape depthwise_layer::out_shape() const {
  const auto windows = [&](std::int64_t extent) { return ceil_div(extent, shape_.stride); };
  return {windows(shape_.in.height), windows(shape_.in.width), shape_.in.channels};
}

/// Convolves with LibTorch's operator. @param images [B, channels, height, width]
/// @param filters [channels, 1, kernel, kernel]
at::Tensor depthwise_layer::applied(const at::Tensor& images, const at::Tensor& filters) const {
  const auto [above, below] = padding_of(shape_.in.height, shape_.kernel, shape_.stride);
  const auto [left, right] = padding_of(shape_.in.width, shape_.kernel, shape_.stride);
  return at::convolution(at::constant_pad_nd(images, {left, right, above, below}, 0), filters, {},
                         {shape_.stride, shape_.stride}, {0, 0}, {1, 1}, false, {0, 0}, shape_.in.channels);
}

at::Tensor depthwise_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto filters =
      pass.weights_at(shape_.weight_offset, {shape_.kernel, shape_.kernel, shape_.in.channels}).flatten(1);
  std::vector<at::Tensor> results;
  for (std::int64_t k = 0; k < pass.models; ++k) { // the copies of each model's operands begin at a cache line
    const auto own = filters_of(filters.select(0, filters.size(0) == 1 ? 0 : k), shape_.kernel);
    const auto images = images_of(in.contiguous(), k, shape_.in).clone(at::MemoryFormat::Contiguous);
    results.push_back(applied(images, own.clone(at::MemoryFormat::Contiguous)).permute({0, 2, 3, 1}).flatten(1));
  }
  return at::stack(results);
}

// -- ReLU6 ------------------------------------------------------------------------------------------------------------

at::Tensor relu6_layer::function(const function_pass&, const at::Tensor& in) const { return in.clamp(0.0, ceiling); }

} // namespace mneme
