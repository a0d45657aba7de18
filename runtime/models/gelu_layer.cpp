#include "runtime/models/gelu_layer.hpp"
#include "runtime/kernels/token_rows.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/sigmoid.h>
namespace mneme {

void gelu_layer::forward(const layer_pass&, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  kernels::gelu(out.mutable_data_ptr<float>(), in.const_data_ptr<float>(), in.numel());
}

void gelu_layer::backward(const layer_pass&, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  kernels::gelu_backward(data.d_in->mutable_data_ptr<float>(), data.d_out.const_data_ptr<float>(),
                         data.in.const_data_ptr<float>(), data.in.numel());
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor gelu_layer::function(const function_pass&, const at::Tensor& in) const {
  return by_element(in, [](const at::Tensor& values) { return at::gelu(values); });
}

at::Tensor quick_gelu_layer::function(const function_pass&, const at::Tensor& in) const {
  return by_element(in, [](const at::Tensor& values) { return values * at::sigmoid(1.702 * values); });
}

} // namespace mneme
