#include "runtime/models/activation_layer.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/sigmoid.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/leaky_relu_backward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
namespace mneme {

activation_layer::activation_layer(std::int64_t width, activation kind, double slope)
    : width_(width), kind_(kind), slope_(slope) {
  MNEME_CHECK(!is_built_in(kind_), static_cast<int>(kind_));
}

void activation_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out,
                               at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  float* const y = out.mutable_data_ptr<float>();
  const float* const x = in.const_data_ptr<float>();
  switch (kind_) {
  case activation::leaky:
    return kernels::leaky_relu(y, x, in.numel(), static_cast<float>(slope_));
  case activation::sigmoid:
    return kernels::sigmoid(y, x, in.numel());
  case activation::tanh:
    return kernels::hyperbolic_tangent(y, x, in.numel());
  default:
    return kernels::silu(y, x, in.numel());
  }
}

void activation_layer::backward(const layer_pass& pass, const backward_data& data,
                                const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  if (!data.in.is_cpu())
    return composite_backward(pass, data);
  float* const dx = data.d_in->mutable_data_ptr<float>();
  const float *const d = data.d_out.const_data_ptr<float>(), *const x = data.in.const_data_ptr<float>(),
                     *const y = data.out.const_data_ptr<float>();
  switch (kind_) {
  case activation::leaky:
    return kernels::leaky_relu_backward(dx, d, x, data.in.numel(), static_cast<float>(slope_));
  case activation::sigmoid:
    return kernels::sigmoid_backward(dx, d, y, data.in.numel());
  case activation::tanh:
    return kernels::hyperbolic_tangent_backward(dx, d, y, data.in.numel());
  default:
    return kernels::silu_backward(dx, d, x, data.in.numel());
  }
}

// -- with LibTorch's operators ----------------------------------------------------------------------------------------

void activation_layer::composite_forward(const layer_pass&, const at::Tensor& in, at::Tensor& out) const {
  switch (kind_) {
  case activation::leaky:
    at::leaky_relu_out(out, in, slope_);
    break;
  case activation::sigmoid:
    at::sigmoid_out(out, in);
    break;
  case activation::tanh:
    at::tanh_out(out, in);
    break;
  default:
    at::silu_out(out, in);
  }
}

void activation_layer::composite_backward(const layer_pass&, const backward_data& data) const {
  switch (kind_) {
  case activation::leaky:
    at::leaky_relu_backward_out(*data.d_in, data.d_out, data.in, slope_, false);
    break;
  case activation::sigmoid:
    at::sigmoid_backward_out(*data.d_in, data.d_out, data.out);
    break;
  case activation::tanh:
    at::tanh_backward_out(*data.d_in, data.d_out, data.out);
    break;
  default:
    at::silu_backward_out(*data.d_in, data.d_out, data.in);
  }
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor activation_layer::function(const function_pass&, const at::Tensor& in) const {
  switch (kind_) {
  case activation::leaky:
    return at::leaky_relu(in, slope_);
  case activation::sigmoid:
    return by_element(in, [](const at::Tensor& values) { return at::sigmoid(values); });
  case activation::tanh:
    return by_element(in, [](const at::Tensor& values) { return at::tanh(values); });
  default:
    return by_element(in, [](const at::Tensor& values) { return at::silu(values); });
  }
}

} // namespace mneme
