/// lstm_layer: a long short-term memory (LSTM) that reads a row token by token.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// PyTorch's LSTM with one layer and one direction (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et
/// al. 2000). a = W x_t + b + U h_(t-1) + b' has four quarters in the order i, f, g, o. A sigmoid is applied to i, f
/// and o, and tanh to g. Then c_t = f c_(t-1) + i g and h_t = o tanh(c_t).
class lstm_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1;                                        ///< T, the number of tokens of a row.
    std::int64_t in = 0;                                            ///< I, the number of channels of a token.
    std::int64_t hidden = 0;                                        ///< H, the hidden size.
    std::int64_t input_weight_offset = 0, hidden_weight_offset = 0; ///< Offsets of [4 H, I] and [4 H, H] within [P].
    std::int64_t input_bias_offset = 0, hidden_bias_offset = 0;     ///< Offsets of [4 H] each within [P].
  };
  explicit lstm_layer(const shape& sizes) : shape_(sizes) {}
  /// Number of values of h for all tokens.
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.hidden; }
  [[nodiscard]] std::int64_t kept_bytes_per_row() const override;
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// @param in [K, B, T * I] @param out [K, B, T * H]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  struct model_pass;
  void step_forward(const model_pass& model, std::int64_t t) const;
  void step_backward(const model_pass& model, std::int64_t t) const;
  void backward_products(const model_pass& model, float* gradient, const gradient_sink& sink) const;

  shape shape_;
};

} // namespace mneme
