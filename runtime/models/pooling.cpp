#include "runtime/models/layers.hpp"
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool2d_with_indices.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <algorithm>
namespace mneme {
namespace {

/// The largest of a window's four pixels, the first of equals (or the last NaN, as in PyTorch), and which one it is.
float largest(const float* top, const float* bottom, std::uint8_t& place) {
  const float window[4] = {top[0], top[1], bottom[0], bottom[1]};
  float best = window[0];
  place = 0;
  for (std::uint8_t i = 1; i < 4; ++i)
    if (window[i] > best || window[i] != window[i])
      best = window[i], place = i;
  return best;
}

} // namespace

void max_pool_layer::forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  if (!in.is_cpu())
    return composite_forward(of, in, out);
  reshape_buffer(kept, out.sizes(), out, at::kByte);
  const auto height = shape_.height / 2, columns = shape_.width / 2;
  const float* x = in.const_data_ptr<float>();
  float* y = out.mutable_data_ptr<float>();
  std::uint8_t* places = kept.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t plane = 0; plane < of.models * of.rows * shape_.channels;
       ++plane, x += shape_.height * shape_.width)
    for (std::int64_t row = 0; row < height; ++row) {
      const float* const top = x + 2 * row * shape_.width;
      for (std::int64_t column = 0; column < columns; ++column)
        *y++ = largest(top + 2 * column, top + shape_.width + 2 * column, *places++);
    }
}

void max_pool_layer::backward(const layer_pass& of, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  if (!data.in.is_cpu())
    return composite_backward(of, data);
  const auto height = shape_.height / 2, columns = shape_.width / 2;
  const float* d = data.d_out.const_data_ptr<float>();
  float* d_in = data.d_in->mutable_data_ptr<float>();
  const std::uint8_t* places = data.kept.const_data_ptr<std::uint8_t>();
  std::fill_n(d_in, data.d_in->numel(), 0.0F);
  for (std::int64_t plane = 0; plane < of.models * of.rows * shape_.channels;
       ++plane, d_in += shape_.height * shape_.width)
    for (std::int64_t row = 0; row < height; ++row)
      for (std::int64_t column = 0; column < columns; ++column, ++places)
        d_in[(2 * row + *places / 2) * shape_.width + 2 * column + *places % 2] = *d++;
}

void max_pool_layer::composite_forward(const layer_pass& of, const at::Tensor& in, at::Tensor& out) const {
  const auto images = in.view({of.models * of.rows, shape_.channels, shape_.height, shape_.width});
  out.copy_(at::max_pool2d(images, {2, 2}, {2, 2}).view(out.sizes()));
}

void max_pool_layer::composite_backward(const layer_pass& of, const backward_data& data) const {
  const auto images = data.in.view({of.models * of.rows, shape_.channels, shape_.height, shape_.width});
  const auto d_out = data.d_out.view({of.models * of.rows, shape_.channels, shape_.height / 2, shape_.width / 2});
  const auto places = std::get<1>(at::max_pool2d_with_indices(images, {2, 2}, {2, 2}));
  const auto d_in = at::max_pool2d_with_indices_backward(d_out, images, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, places);
  data.d_in->copy_(d_in.view(data.d_in->sizes()));
}

} // namespace mneme
