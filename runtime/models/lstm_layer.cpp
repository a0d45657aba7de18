#include "runtime/models/lstm_layer.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/kernels/sigmoid.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
namespace mneme {

// Axes: K models, B rows, T tokens, I channels of a token, H hidden size, G = 4 H gate values. The forward pass keeps
// [K, B, T, 6 H]: the gates i, f, g, o after their activation functions, then c and tanh(c).

std::int64_t lstm_layer::kept_bytes_per_row() const {
  return 6 * shape_.tokens * shape_.hidden * static_cast<std::int64_t>(sizeof(float));
}

// -- CPU, model by model ----------------------------------------------------------------------------------------------

/// Data of one model's pass.
struct lstm_layer::model_pass {
  const float* weights = nullptr; ///< [P]
  const float* x = nullptr;       ///< [B, T, I]
  const float* h = nullptr;       ///< [B, T, H]
  float* h_made = nullptr;        ///< The memory of `h`, which a forward pass writes.
  float* kept = nullptr;          ///< [B, T, 6 H]
  std::int64_t rows = 0;          ///< B
  float* step = nullptr;          ///< forward [B, G]: the recurrent part of the gates; backward [B, T, H]: h of the
                                  ///< previous token
  const float* d_h = nullptr;     ///< [B, T, H]
  float* d_gates = nullptr;       ///< [B, T, G]
  float *d_memory = nullptr, *d_step = nullptr; ///< [B, H] gradients of c and h from the next token
};

void lstm_layer::forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const {
  const auto tokens = shape_.tokens, hidden = shape_.hidden;
  reshape_buffer(kept, {pass.models, pass.rows, tokens, 6 * hidden}, in);
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const model_pass model{.weights = pass.weights_of(k),
                           .x = in.const_data_ptr<float>() + k * pass.rows * tokens * shape_.in,
                           .h = out.const_data_ptr<float>() + k * pass.rows * tokens * hidden,
                           .h_made = out.mutable_data_ptr<float>() + k * pass.rows * tokens * hidden,
                           .kept = kept.mutable_data_ptr<float>() + k * pass.rows * tokens * 6 * hidden,
                           .rows = pass.rows,
                           .step = pass.memory->take(0, pass.rows * 4 * hidden)};
    kernels::multiply(kernels::dot_product{.a = model.x,
                                           .a_row = shape_.in,
                                           .b = model.weights + shape_.input_weight_offset,
                                           .b_row = shape_.in,
                                           .c = model.kept,
                                           .c_row = 6 * hidden,
                                           .m = pass.rows * tokens,
                                           .n = 4 * hidden,
                                           .k = shape_.in,
                                           .bias = model.weights + shape_.input_bias_offset});
    for (std::int64_t t = 0; t < tokens; ++t)
      step_forward(model, t);
  }
}

void lstm_layer::step_forward(const model_pass& model, std::int64_t t) const {
  const auto tokens = shape_.tokens, hidden = shape_.hidden;
  const float* const bias = model.weights + shape_.hidden_bias_offset;
  if (t > 0)
    kernels::multiply(kernels::dot_product{.a = model.h + (t - 1) * hidden,
                                           .a_row = tokens * hidden,
                                           .b = model.weights + shape_.hidden_weight_offset,
                                           .b_row = hidden,
                                           .c = model.step,
                                           .c_row = 4 * hidden,
                                           .m = model.rows,
                                           .n = 4 * hidden,
                                           .k = hidden,
                                           .bias = bias});
  for (std::int64_t b = 0; b < model.rows; ++b) {
    float* const gates = model.kept + (b * tokens + t) * 6 * hidden;
    const float* const added = t > 0 ? model.step + b * 4 * hidden : bias;
    kernels::add(gates, gates, added, 4 * hidden, false);
    kernels::sigmoid(gates, gates, 2 * hidden);
    kernels::hyperbolic_tangent(gates + 2 * hidden, gates + 2 * hidden, hidden);
    kernels::sigmoid(gates + 3 * hidden, gates + 3 * hidden, hidden);
    const float *const i = gates, *const f = i + hidden, *const g = f + hidden, *const o = g + hidden;
    float *const c = gates + 4 * hidden, *const squashed = c + hidden,
                 *const h = model.h_made + (b * tokens + t) * hidden;
    for (std::int64_t n = 0; n < hidden; ++n)
      c[n] = i[n] * g[n] + (t > 0 ? f[n] * c[n - 6 * hidden] : 0.0F);
    kernels::hyperbolic_tangent(squashed, c, hidden);
    for (std::int64_t n = 0; n < hidden; ++n)
      h[n] = o[n] * squashed[n];
  }
}

void lstm_layer::backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const {
  const auto tokens = shape_.tokens, hidden = shape_.hidden;
  for (std::int64_t k = 0; k < pass.models; ++k) {
    const auto at = k * pass.rows * tokens;
    const model_pass model{.weights = pass.weights_of(k),
                           .x = data.in.const_data_ptr<float>() + at * shape_.in,
                           .h = data.out.const_data_ptr<float>() + at * hidden,
                           .kept = data.kept.mutable_data_ptr<float>() + at * 6 * hidden,
                           .rows = pass.rows,
                           .step = pass.memory->take(0, pass.rows * tokens * hidden),
                           .d_h = data.d_out.const_data_ptr<float>() + at * hidden,
                           .d_gates = pass.memory->take(1, pass.rows * tokens * 4 * hidden),
                           .d_memory = pass.memory->take(2, pass.rows * hidden),
                           .d_step = pass.memory->take(3, pass.rows * hidden)};
    std::fill_n(model.d_memory, pass.rows * hidden, 0.0F);
    std::fill_n(model.d_step, pass.rows * hidden, 0.0F);
    for (std::int64_t t = tokens; t-- > 0;)
      step_backward(model, t);
    if (data.d_in)
      kernels::multiply(kernels::row_product{.a = model.d_gates,
                                             .a_row = 4 * hidden,
                                             .a_step = 1,
                                             .b = model.weights + shape_.input_weight_offset,
                                             .b_row = shape_.in,
                                             .c = data.d_in->mutable_data_ptr<float>() + at * shape_.in,
                                             .c_row = shape_.in,
                                             .m = pass.rows * tokens,
                                             .n = shape_.in,
                                             .k = 4 * hidden});
    if (!data.fixed)
      backward_products(model, sink.into.mutable_data_ptr<float>() + k * sink.into.stride(0), sink);
  }
}

void lstm_layer::step_backward(const model_pass& model, std::int64_t t) const {
  const auto tokens = shape_.tokens, hidden = shape_.hidden;
  for (std::int64_t b = 0; b < model.rows; ++b) {
    const auto at = b * tokens + t;
    const float* const i = model.kept + at * 6 * hidden;
    const float *const f = i + hidden, *const g = f + hidden, *const o = g + hidden, *const c = o + hidden,
                       *const squashed = c + hidden;
    float *const d_i = model.d_gates + at * 4 * hidden, *const d_f = d_i + hidden, *const d_g = d_f + hidden,
                 *const d_o = d_g + hidden, *const d_memory = model.d_memory + b * hidden;
    for (std::int64_t n = 0; n < hidden; ++n) {
      const float d_h = model.d_h[at * hidden + n] + model.d_step[b * hidden + n];
      const float d_c = d_memory[n] + d_h * o[n] * (1.0F - squashed[n] * squashed[n]);
      d_i[n] = d_c * g[n] * i[n] * (1.0F - i[n]);
      d_f[n] = t > 0 ? d_c * c[n - 6 * hidden] * f[n] * (1.0F - f[n]) : 0.0F;
      d_g[n] = d_c * i[n] * (1.0F - g[n] * g[n]);
      d_o[n] = d_h * squashed[n] * o[n] * (1.0F - o[n]);
      d_memory[n] = d_c * f[n];
    }
  }
  if (t > 0)
    kernels::multiply(kernels::row_product{.a = model.d_gates + t * 4 * hidden,
                                           .a_row = tokens * 4 * hidden,
                                           .a_step = 1,
                                           .b = model.weights + shape_.hidden_weight_offset,
                                           .b_row = hidden,
                                           .c = model.d_step,
                                           .c_row = hidden,
                                           .m = model.rows,
                                           .n = hidden,
                                           .k = 4 * hidden});
}

/// Computes the gradients of weights and biases, which are sums over rows and tokens.
void lstm_layer::backward_products(const model_pass& model, float* gradient, const gradient_sink& sink) const {
  const auto tokens = shape_.tokens, hidden = shape_.hidden, count = model.rows * tokens;
  for (std::int64_t b = 0; b < model.rows; ++b) { // h before each token; zeros before the first token
    std::fill_n(model.step + b * tokens * hidden, hidden, 0.0F);
    std::copy_n(model.h + b * tokens * hidden, (tokens - 1) * hidden, model.step + (b * tokens + 1) * hidden);
  }
  const auto deliver = [&](const float* inputs, std::int64_t columns, std::int64_t offset) {
    kernels::multiply(kernels::row_product{.a = model.d_gates,
                                           .a_row = 1,
                                           .a_step = 4 * hidden,
                                           .b = inputs,
                                           .b_row = columns,
                                           .before = sink.add ? gradient + offset : nullptr,
                                           .c = gradient + offset,
                                           .c_row = columns,
                                           .m = 4 * hidden,
                                           .n = columns,
                                           .k = count,
                                           .scale = sink.scale});
  };
  deliver(model.x, shape_.in, shape_.input_weight_offset);
  deliver(model.step, hidden, shape_.hidden_weight_offset);
  for (const auto offset : {shape_.input_bias_offset, shape_.hidden_bias_offset})
    kernels::sum_rows({.in = model.d_gates,
                       .rows = count,
                       .columns = 4 * hidden,
                       .before = sink.add ? gradient + offset : nullptr,
                       .out = gradient + offset,
                       .scale = sink.scale});
}

// -- as a differentiable function -------------------------------------------------------------------------------------

at::Tensor lstm_layer::function(const function_pass& pass, const at::Tensor& in) const {
  const auto hidden = shape_.hidden, gates = 4 * hidden;
  const auto of_memory = pass.weights_at(shape_.hidden_weight_offset, {gates, hidden});
  const auto of_inputs = stacked_product(in.reshape({pass.models, -1, shape_.in}),
                                         pass.weights_at(shape_.input_weight_offset, {gates, shape_.in}))
                             .unflatten(1, {pass.rows, shape_.tokens}) +
                         pass.weights_at(shape_.input_bias_offset, {1, 1, gates}); // [K, B, T, G]
  const auto bias = pass.weights_at(shape_.hidden_bias_offset, {1, gates});
  const auto sigmoid = [](const at::Tensor& values) { return at::sigmoid(values); };
  const auto tangent = [](const at::Tensor& values) { return at::tanh(values); };
  auto h = at::zeros({pass.models, pass.rows, hidden}, in.options()), c = h;
  std::vector<at::Tensor> states;
  for (std::int64_t t = 0; t < shape_.tokens; ++t) {
    const auto a = of_inputs.select(2, t) + (t > 0 ? stacked_product(h, of_memory) + bias : bias);
    const auto i = by_element(a.narrow(2, 0, hidden), sigmoid), f = by_element(a.narrow(2, hidden, hidden), sigmoid);
    const auto g = by_element(a.narrow(2, 2 * hidden, hidden), tangent);
    c = f * c + i * g;
    h = by_element(a.narrow(2, 3 * hidden, hidden), sigmoid) * by_element(c, tangent);
    states.push_back(h);
  }
  return at::cat(states, 2);
}

} // namespace mneme
