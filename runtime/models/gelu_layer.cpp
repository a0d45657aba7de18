#include "runtime/models/gelu_layer.hpp"
#include "runtime/kernels/token_rows.hpp"
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
namespace mneme {

void gelu_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  if (!in.is_cpu())
    return composite_forward(pass, in, out);
  kernels::gelu(out.mutable_data_ptr<float>(), in.const_data_ptr<float>(), in.numel());
}

void gelu_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& /*sink*/) const {
  if (!data.d_in)
    return;
  if (!data.in.is_cpu())
    return composite_backward(pass, data);
  kernels::gelu_backward(data.d_in->mutable_data_ptr<float>(), data.d_out.const_data_ptr<float>(),
                         data.in.const_data_ptr<float>(), data.in.numel());
}

void gelu_layer::composite_forward(const layer_pass&, const at::Tensor& in, at::Tensor& out) const {
  at::gelu_out(out, in);
}

void gelu_layer::composite_backward(const layer_pass&, const backward_data& data) const {
  at::gelu_backward_out(*data.d_in, data.d_out, data.in);
}

// -- as a function ----------------------------------------------------------------------------------------------------

at::Tensor gelu_layer::function(const function_pass&, const at::Tensor& in) const {
  return by_element(in, [](const at::Tensor& values) { return at::gelu(values); });
}

} // namespace mneme
