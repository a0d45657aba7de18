#include "runtime/models/transposed_convolution.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
namespace mneme {

// Axes: K models, B rows.

transposed_convolution_layer::transposed_convolution_layer(const shape& sizes) : shape_(sizes) {
  MNEME_CHECK(0 < shape_.kernel && shape_.kernel <= 15, shape_.kernel);
  MNEME_CHECK(0 <= shape_.output_padding_px && shape_.output_padding_px < shape_.stride, shape_.output_padding_px,
              shape_.stride);
  MNEME_CHECK(out_shape().height > 0 && out_shape().width > 0, shape_.in.height, shape_.in.width, shape_.padding);
}

image_shape transposed_convolution_layer::out_shape() const {
  const auto side = [&](std::int64_t pixels) {
    return (pixels - 1) * shape_.stride - 2 * shape_.padding + shape_.kernel + shape_.output_padding_px;
  };
  return {side(shape_.in.height), side(shape_.in.width), shape_.filters};
}

at::Tensor transposed_convolution_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto& image = shape_.in;
  const bool biased = shape_.bias_offset >= 0;
  const auto filters =
      pass.weights_at(shape_.weight_offset, {shape_.kernel, shape_.kernel, shape_.filters, image.channels})
          .permute({0, 4, 3, 1, 2}); // [K, in channels, out channels, kernel, kernel]
  const auto bias = biased ? pass.weights_at(shape_.bias_offset, {shape_.filters}) : at::Tensor{};
  const auto images = in.reshape({pass.models, pass.rows, image.height, image.width, image.channels})
                          .permute({0, 1, 4, 2, 3}); // [K, B, channels, height, width]
  std::vector<at::Tensor> results;                   // the copies of each model's operands begin at a cache line
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto row = filters.size(0) == 1 ? 0 : k;
    results.push_back(at::convolution(images.select(0, k).clone(at::MemoryFormat::Contiguous),
                                      filters.select(0, row).clone(at::MemoryFormat::Contiguous),
                                      biased ? bias.select(0, row).clone() : at::Tensor{},
                                      {shape_.stride, shape_.stride}, {shape_.padding, shape_.padding}, {1, 1}, true,
                                      {shape_.output_padding_px, shape_.output_padding_px}, 1));
  }
  const auto y = at::stack(results).permute({0, 1, 3, 4, 2}).reshape({pass.models, pass.rows, -1});
  return shape_.after == activation::relu ? at::relu(y) : y;
}

} // namespace mneme
