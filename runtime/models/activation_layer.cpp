#include "runtime/models/activation_layer.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tanh.h>
namespace mneme {

activation_layer::activation_layer(std::int64_t width, activation kind, double slope)
    : width_(width), kind_(kind), slope_(slope) {
  MNEME_CHECK(!is_built_in(kind_), static_cast<int>(kind_));
}

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
