#include "runtime/models/dropout.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/dropout.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <algorithm>
#include <cmath>
namespace mneme {

dropout_layer::dropout_layer(std::int64_t width, std::uint64_t number, double rate)
    : width_(width), number_(number), rate_(rate) {
  MNEME_CHECK(0.0 <= rate && rate < 1.0, rate);
}

/// Draws the masks of all models. @param masks [K, B, width] bytes on a CPU; 0 drops a value, 1 keeps it
void dropout_layer::draw(const training_mode& training, at::Tensor& masks) const {
  MNEME_CHECK(std::ssize(training.streams) == masks.size(0), masks.size(0));
  const auto values = masks.size(1) * width_;
  const auto drop_below = static_cast<std::uint32_t>(std::min(std::lround(rate_ * 65536.0), 65535L));
  for (std::int64_t k = 0; k < masks.size(0); ++k) {
    auto key = training.streams[static_cast<std::size_t>(k)];
    key.index = key.index << 8U | number_;
    kernels::draw_dropout_mask(stream_name_of(key), drop_below, masks.mutable_data_ptr<std::uint8_t>() + k * values,
                               values);
  }
}

void dropout_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  MNEME_CHECK(pass.training, pass.models);
  auto masks = in.is_cpu() ? kept : at::Tensor{};
  if (in.is_cpu())
    reshape_buffer(kept, in.sizes(), in, at::kByte), masks = kept;
  else
    masks = at::empty(in.sizes(), at::kByte);
  draw(*pass.training, masks);
  const auto scale = static_cast<float>(1.0 / (1.0 - rate_));
  if (in.is_cpu()) {
    kernels::apply_dropout_mask(in.const_data_ptr<float>(), kept.const_data_ptr<std::uint8_t>(), scale,
                                out.mutable_data_ptr<float>(), in.numel());
    return;
  }
  kept = masks.to(in.device());
  at::mul_out(out, in, kept).mul_(scale);
}

void dropout_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  const auto scale = static_cast<float>(1.0 / (1.0 - rate_));
  if (data.in.is_cpu())
    kernels::apply_dropout_mask(data.d_out.const_data_ptr<float>(), data.kept.const_data_ptr<std::uint8_t>(), scale,
                                data.d_in->mutable_data_ptr<float>(), data.in.numel());
  else
    at::mul_out(*data.d_in, data.d_out, data.kept).mul_(scale);
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor dropout_layer::function(const function_pass& pass, const at::Tensor& in) const {
  if (!pass.training)
    return in;
  auto masks = at::empty(in.sizes(), at::kByte);
  draw(*pass.training, masks);
  return in * masks.to(in.options()) * (1.0 / (1.0 - rate_));
}

} // namespace mneme
