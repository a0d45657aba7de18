#include "runtime/check.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/models/layers.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/relu.h>
#include <algorithm>
#include <limits>
namespace mneme {
namespace {

// A convolution without unfolding. Let the output be as wide as the padded input: output pixel j = oy * Wp + ox then
// reads input pixel j + ky * Wp + kx, so each (channel, ky, kx) is a shifted view of the padded image, and the
// convolution is one matrix product whose right rows overlap. Columns ox >= out_width are computed and dropped.

constexpr std::int64_t vector_floats = 16;
std::int64_t in_whole_vectors(std::int64_t n) { return (n + vector_floats - 1) / vector_floats * vector_floats; }

at::Tensor filters_of(const layer_pass& of, std::int64_t k, std::int64_t offset, at::IntArrayRef shape) {
  const auto row = of.weights.select(0, of.weights.size(0) == 1 ? 0 : k);
  std::int64_t size = 1;
  for (const auto extent : shape)
    size *= extent;
  return row.narrow(0, offset, size).view(shape);
}

} // namespace

conv_layer::conv_layer(const shape& what) : shape_(what) {
  MNEME_CHECK(shape_.out_height() > 0 && shape_.out_width() > 0, shape_.height, shape_.width, shape_.kernel);
  const auto kernel = shape_.kernel, taps = kernel * kernel;
  padded_width_ = shape_.width + 2 * shape_.padding;
  padded_plane_ = (shape_.height + 2 * shape_.padding) * padded_width_;
  plane_up_ = in_whole_vectors(padded_plane_);
  wide_ = in_whole_vectors(shape_.out_height() * padded_width_);
  front_ = (kernel - 1) * padded_width_ + kernel - 1;
  MNEME_CHECK(std::max(shape_.channels, shape_.filters) * (front_ + plane_up_) <
              std::numeric_limits<std::int32_t>::max());
  for (std::int64_t channel = 0; channel < shape_.channels; ++channel)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      forward_weight_.push_back(static_cast<std::int32_t>(channel * taps + tap));
      forward_input_.push_back(
          static_cast<std::int32_t>(channel * padded_plane_ + tap / kernel * padded_width_ + tap % kernel));
    }
  for (std::int64_t filter = 0; filter < shape_.filters; ++filter)
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      backward_weight_.push_back(static_cast<std::int32_t>(filter * shape_.channels * taps + tap));
      backward_output_.push_back(static_cast<std::int32_t>(filter * (front_ + plane_up_) + front_ -
                                                           tap / kernel * padded_width_ - tap % kernel));
    }
}

/// image [channels, H, W] -> padded [channels, Hp, Wp]; the border is zero already.
void conv_layer::pad(const float* image, float* padded) const {
  for (std::int64_t channel = 0; channel < shape_.channels; ++channel)
    for (std::int64_t y = 0; y < shape_.height; ++y)
      std::copy_n(image + (channel * shape_.height + y) * shape_.width, shape_.width,
                  padded + channel * padded_plane_ + (y + shape_.padding) * padded_width_ + shape_.padding);
}

/// d_out [filters, oh, ow] -> gradients [filters, front + plane], zero between the rows.
void conv_layer::spread(const float* d_out, float* gradients) const {
  const auto height = shape_.out_height(), width = shape_.out_width();
  for (std::int64_t filter = 0; filter < shape_.filters; ++filter)
    for (std::int64_t y = 0; y < height; ++y)
      std::copy_n(d_out + (filter * height + y) * width, width,
                  gradients + filter * (front_ + plane_up_) + front_ + y * padded_width_);
}

void conv_layer::forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(of, in, out);
  const auto height = shape_.out_height(), out_columns = shape_.out_width();
  const auto in_size = shape_.channels * shape_.height * shape_.width, out_size = width({});
  std::vector<float> padded(static_cast<std::size_t>(shape_.channels * padded_plane_ + front_ + vector_floats));
  std::vector<float> result(static_cast<std::size_t>(shape_.filters * wide_));
  for (std::int64_t image = 0; image < of.models * of.rows; ++image) {
    const float* const w =
        of.weights.const_data_ptr<float>() + (of.weights.size(0) == 1 ? 0 : image / of.rows * of.weights.stride(0));
    pad(in.const_data_ptr<float>() + image * in_size, padded.data());
    kernels::multiply(kernels::row_product{.a = w + shape_.weight_offset,
                                           .a_row = static_cast<std::int64_t>(forward_weight_.size()),
                                           .b = padded.data(),
                                           .a_at = forward_weight_.data(),
                                           .b_at = forward_input_.data(),
                                           .c = result.data(),
                                           .c_row = wide_,
                                           .m = shape_.filters,
                                           .n = wide_,
                                           .k = static_cast<std::int64_t>(forward_weight_.size()),
                                           .bias = w + shape_.bias_offset});
    float* const y = out.mutable_data_ptr<float>() + image * out_size;
    for (std::int64_t filter = 0; filter < shape_.filters; ++filter)
      for (std::int64_t row = 0; row < height; ++row)
        std::copy_n(result.data() + filter * wide_ + row * padded_width_, out_columns,
                    y + (filter * height + row) * out_columns);
    if (shape_.after == activation::relu)
      kernels::relu(y, out_size);
  }
}

void conv_layer::backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const {
  if (!data.in.is_cpu())
    return composite_backward(of, data, sink);
  const auto in_size = shape_.channels * shape_.height * shape_.width, out_size = width({});
  const auto pixels = shape_.out_height() * shape_.out_width(), taps = shape_.kernel * shape_.kernel;
  const auto inputs = shape_.channels * taps, gradient_row = front_ + plane_up_;
  std::vector<float> padded(static_cast<std::size_t>(shape_.channels * padded_plane_ + front_ + vector_floats));
  std::vector<float> gradients(static_cast<std::size_t>(shape_.filters * gradient_row));
  std::vector<float> d_padded(static_cast<std::size_t>(shape_.channels * plane_up_));
  std::vector<float> d_weight(static_cast<std::size_t>(shape_.filters * inputs)), ones(pixels, 1.0F);
  std::vector<float> d_bias(static_cast<std::size_t>(shape_.filters));
  for (std::int64_t image = 0; image < of.models * of.rows; ++image) {
    const auto k = image / of.rows;
    const bool first = image % of.rows == 0, last = image % of.rows == of.rows - 1;
    float* const d = data.d_out.mutable_data_ptr<float>() + image * out_size;
    if (shape_.after == activation::relu)
      kernels::relu_backward(d, data.out.const_data_ptr<float>() + image * out_size, out_size);
    pad(data.in.const_data_ptr<float>() + image * in_size, padded.data());
    spread(d, gradients.data());
    if (data.d_in) {
      kernels::multiply(kernels::row_product{.a = of.weights.const_data_ptr<float>() + k * of.weights.stride(0) +
                                                  shape_.weight_offset,
                                             .a_row = taps,
                                             .b = gradients.data(),
                                             .a_at = backward_weight_.data(),
                                             .b_at = backward_output_.data(),
                                             .c = d_padded.data(),
                                             .c_row = plane_up_,
                                             .m = shape_.channels,
                                             .n = plane_up_,
                                             .k = static_cast<std::int64_t>(backward_weight_.size())});
      float* const d_in = data.d_in->mutable_data_ptr<float>() + image * in_size;
      for (std::int64_t channel = 0; channel < shape_.channels; ++channel)
        for (std::int64_t y = 0; y < shape_.height; ++y)
          std::copy_n(d_padded.data() + channel * plane_up_ + (y + shape_.padding) * padded_width_ + shape_.padding,
                      shape_.width, d_in + (channel * shape_.height + y) * shape_.width);
    }
    kernels::multiply(kernels::dot_product{.a = gradients.data() + front_,
                                           .a_row = gradient_row,
                                           .b = padded.data(),
                                           .b_at = forward_input_.data(),
                                           .c = d_weight.data(),
                                           .c_row = inputs,
                                           .m = shape_.filters,
                                           .n = inputs,
                                           .k = wide_,
                                           .add = !first});
    kernels::multiply(kernels::dot_product{.a = d,
                                           .a_row = pixels,
                                           .b = ones.data(),
                                           .b_row = pixels,
                                           .c = d_bias.data(),
                                           .c_row = 1,
                                           .m = shape_.filters,
                                           .n = 1,
                                           .k = pixels,
                                           .add = !first});
    if (last) {
      float* const target = sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0);
      kernels::deliver(target + shape_.weight_offset, d_weight.data(), shape_.filters * inputs, sink.scale, sink.add);
      kernels::deliver(target + shape_.bias_offset, d_bias.data(), shape_.filters, sink.scale, sink.add);
    }
  }
}

void conv_layer::composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const {
  const auto images = in.view({of.models, of.rows, shape_.channels, shape_.height, shape_.width});
  for (std::int64_t k = 0; k < of.models; ++k) {
    const auto weight =
        filters_of(of, k, shape_.weight_offset, {shape_.filters, shape_.channels, shape_.kernel, shape_.kernel});
    const auto bias = filters_of(of, k, shape_.bias_offset, {shape_.filters});
    auto result = at::convolution(images[k], weight, bias, {1, 1}, {shape_.padding, shape_.padding}, {1, 1}, false,
                                  {0, 0}, 1); // [B, filters, oh, ow]
    if (shape_.after == activation::relu)
      at::relu_(result);
    out.select(0, k).copy_(result.flatten(1));
  }
}

void conv_layer::composite_backward(const layer_pass& of, const backward_data& data, const gradient_sink& sink) const {
  if (shape_.after == activation::relu)
    data.d_out.masked_fill_(data.out <= 0, 0);
  const auto images = data.in.view({of.models, of.rows, shape_.channels, shape_.height, shape_.width});
  const auto d_out = data.d_out.view({of.models, of.rows, shape_.filters, shape_.out_height(), shape_.out_width()});
  for (std::int64_t k = 0; k < of.models; ++k) {
    const auto weight =
        filters_of(of, k, shape_.weight_offset, {shape_.filters, shape_.channels, shape_.kernel, shape_.kernel});
    const auto bias_sizes = std::vector<std::int64_t>{shape_.filters};
    const auto [d_in, d_weight, d_bias] = at::convolution_backward(
        d_out[k], images[k], weight, at::OptionalIntArrayRef(bias_sizes), {1, 1}, {shape_.padding, shape_.padding},
        {1, 1}, false, {0, 0}, 1, {data.d_in != nullptr, true, true});
    if (data.d_in)
      data.d_in->select(0, k).copy_(d_in.flatten(1));
    write_gradient(sink, k, shape_.weight_offset, d_weight);
    write_gradient(sink, k, shape_.bias_offset, d_bias);
  }
}

} // namespace mneme
