#include "runtime/models/depthwise_layer.hpp"
#include "runtime/base/ceil_div.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme {
namespace {

// Axes: K models, B rows of a step; an image [height, width, channels], filters [kernel, kernel, channels].

constexpr double ceiling = 6.0;

/// Model k's images as LibTorch takes them: [B, channels, height, width].
at::Tensor images_of(const at::Tensor& whole, std::int64_t k, const image_shape& image) {
  return whole[k].view({whole.size(1), image.height, image.width, image.channels}).permute({0, 3, 1, 2});
}

/// Filters as LibTorch takes them: [channels, 1, kernel, kernel].
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

template <class Use>
void depthwise_layer::for_each_tap(const Use& use) const {
  const auto out = out_shape();
  const auto above = padding_of(shape_.in.height, shape_.kernel, shape_.stride)[0];
  const auto left = padding_of(shape_.in.width, shape_.kernel, shape_.stride)[0];
  for (std::int64_t y = 0; y < out.height; ++y)
    for (std::int64_t x = 0; x < out.width; ++x)
      for (std::int64_t tap = 0; tap < shape_.kernel * shape_.kernel; ++tap) {
        const auto row = y * shape_.stride - above + tap / shape_.kernel;
        const auto column = x * shape_.stride - left + tap % shape_.kernel;
        if (0 <= row && row < shape_.in.height && 0 <= column && column < shape_.in.width)
          use(y * out.width + x, row * shape_.in.width + column, tap);
      }
}

void depthwise_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                              at::Tensor& /*kept*/) const {
  const auto channels = shape_.in.channels, filters = shape_.kernel * shape_.kernel * channels;
  if (!in.is_cpu()) {
    for (std::int64_t k = 0; k < pass.models; ++k)
      images_of(out, k, out_shape())
          .copy_(applied(images_of(in, k, shape_.in),
                         filters_of(pass.weights_row(k).narrow(0, shape_.weight_offset, filters), shape_.kernel)));
    return;
  }
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const float* const w = pass.weights_of(k) + shape_.weight_offset;
    for (std::int64_t b = 0; b < pass.rows; ++b) {
      const float* const image = in.const_data_ptr<float>() + (k * pass.rows + b) * shape_.in.floats();
      float* const result = out.mutable_data_ptr<float>() + (k * pass.rows + b) * width({});
      std::fill_n(result, width({}), 0.0F);
      for_each_tap([&](std::int64_t to, std::int64_t from, std::int64_t tap) {
        const float* const x = image + from * channels;
        const float* const own = w + tap * channels;
        float* const y = result + to * channels;
        for (std::int64_t c = 0; c < channels; ++c)
          y[c] += own[c] * x[c];
      });
    }
  }
}

void depthwise_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  const auto channels = shape_.in.channels, filters = shape_.kernel * shape_.kernel * channels;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto own = pass.weights_row(k).narrow(0, shape_.weight_offset, filters);
    if (!data.in.is_cpu()) {
      const auto [above, below] = padding_of(shape_.in.height, shape_.kernel, shape_.stride);
      const auto [left, right] = padding_of(shape_.in.width, shape_.kernel, shape_.stride);
      const auto padded = at::constant_pad_nd(images_of(data.in, k, shape_.in), {left, right, above, below}, 0);
      const auto [d_in, d_filters, d_bias] =
          at::convolution_backward(images_of(data.d_out, k, out_shape()), padded, filters_of(own, shape_.kernel),
                                   at::OptionalIntArrayRef(), {shape_.stride, shape_.stride}, {0, 0}, {1, 1}, false,
                                   {0, 0}, channels, {data.d_in != nullptr, !data.fixed, false});
      if (data.d_in)
        images_of(*data.d_in, k, shape_.in)
            .copy_(d_in.narrow(2, above, shape_.in.height).narrow(3, left, shape_.in.width));
      if (!data.fixed)
        write_gradient(sink, k, shape_.weight_offset, d_filters.permute({2, 3, 0, 1}).contiguous());
      continue;
    }
    const float* const w = own.const_data_ptr<float>();
    auto slope = at::zeros({filters});
    float* const d_w = slope.mutable_data_ptr<float>();
    for (std::int64_t b = 0; b < pass.rows; ++b) {
      const float* const image = data.in.const_data_ptr<float>() + (k * pass.rows + b) * shape_.in.floats();
      const float* const d_result = data.d_out.const_data_ptr<float>() + (k * pass.rows + b) * width({});
      float* const d_image =
          data.d_in ? data.d_in->mutable_data_ptr<float>() + (k * pass.rows + b) * shape_.in.floats() : nullptr;
      if (d_image)
        std::fill_n(d_image, shape_.in.floats(), 0.0F);
      for_each_tap([&](std::int64_t to, std::int64_t from, std::int64_t tap) {
        const float *const x = image + from * channels, *const d = d_result + to * channels;
        float* const sum = d_w + tap * channels;
        if (!data.fixed)
          for (std::int64_t c = 0; c < channels; ++c)
            sum[c] += d[c] * x[c];
        if (!d_image)
          return;
        float* const dx = d_image + from * channels;
        for (std::int64_t c = 0; c < channels; ++c)
          dx[c] += d[c] * w[tap * channels + c];
      });
    }
    if (!data.fixed)
      write_gradient(sink, k, shape_.weight_offset, slope);
  }
}

/// By LibTorch. @param images [B, channels, height, width] @param filters [channels, 1, kernel, kernel]
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
  for (std::int64_t k = 0; k < pass.models; ++k) { // copies: each model's operands begin at a line
    const auto own = filters_of(filters.select(0, filters.size(0) == 1 ? 0 : k), shape_.kernel);
    const auto images = images_of(in.contiguous(), k, shape_.in).clone(at::MemoryFormat::Contiguous);
    results.push_back(applied(images, own.clone(at::MemoryFormat::Contiguous)).permute({0, 2, 3, 1}).flatten(1));
  }
  return at::stack(results);
}

// -- ReLU6 ------------------------------------------------------------------------------------------------------------

void relu6_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  at::clamp_out(out, in, 0.0, ceiling);
}

void relu6_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (data.d_in)
    data.d_in->copy_(data.d_out.masked_fill((data.in <= 0.0).logical_or(data.in >= ceiling), 0.0));
}

at::Tensor relu6_layer::function(const function_pass&, const at::Tensor& in) const { return in.clamp(0.0, ceiling); }

} // namespace mneme
