#include "runtime/models/linear_layer.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
namespace mneme {
namespace {

float* row_of(const at::Tensor& whole, std::int64_t k) { return whole.mutable_data_ptr<float>() + k * whole.stride(0); }

} // namespace

void linear_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& /*kept*/) const {
  const auto part = shape_.rows_for(pass.classes.low, pass.classes.high);
  const float* const x = in.const_data_ptr<float>();
  float* const y = out.mutable_data_ptr<float>();
  for (std::int64_t k = 0; k < pass.models; ++k)
    dense_forward(part, pass.weights_of(k), x + k * pass.rows * part.in, pass.rows, y + k * pass.rows * part.out);
}

void linear_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  const auto part = shape_.rows_for(pass.classes.low, pass.classes.high);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    float* const gradient = data.fixed ? nullptr : row_of(sink.into, k);
    dense_backward(part, {.weights = pass.weights_of(k),
                          .x = data.in.const_data_ptr<float>() + k * pass.rows * part.in,
                          .y = data.out.const_data_ptr<float>() + k * pass.rows * part.out,
                          .d_y = row_of(data.d_out, k),
                          .d_x = data.d_in ? row_of(*data.d_in, k) : nullptr,
                          .rows = pass.rows,
                          .before = sink.add ? gradient : nullptr,
                          .into = gradient,
                          .scale = sink.scale});
  }
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor linear_layer::function(const function_pass& pass, const at::Tensor& in) const {
  auto weight = pass.weights_at(shape_.weight_offset, {shape_.out, shape_.in});
  if (shape_.head)
    weight = weight.narrow(1, pass.classes.low, pass.classes.size());
  auto y = stacked_product(in, weight);
  if (shape_.biased()) {
    const auto bias = pass.weights_at(shape_.bias_offset, {1, shape_.out});
    y = y + (shape_.head ? bias.narrow(2, pass.classes.low, pass.classes.size()) : bias);
  }
  return shape_.after == activation::relu ? at::relu(y) : y;
}

} // namespace mneme
