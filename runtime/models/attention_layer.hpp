/// attention_layer: every token looks at all tokens of its image.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Scaled dot-product attention (Vaswani et al. 2017, section 3.2) by `heads` heads of queries, keys and values that
/// lie side by side in the input: softmax(Q K^T / sqrt(d)) V. The softmax is computed anew in the backward pass, which
/// costs a fiftieth of a block's time and saves heads * tokens^2 floats a row. Where the net's inputs are tokens, no
/// token looks at padding; in a row of nothing else, no token looks at anything, and all results are zeros.
class attention_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1;
    std::int64_t queries = 1; ///< Tokens, from the first on, whose results are wanted.
    std::int64_t heads = 1;
    std::int64_t channels = 0; ///< Channels of all heads together.
    std::int64_t padding = -1; ///< Token of the net's inputs that nobody looks at; -1: none.
  };
  explicit attention_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.queries * shape_.channels; }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// in [K, B, tokens * 3 * channels]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  struct operands;
  [[nodiscard]] operands operands_of(const at::Tensor& in) const;
  [[nodiscard]] operands copies_of(const layer_pass& pass, const operands& from) const;
  [[nodiscard]] at::Tensor hidden_in(const at::Tensor* inputs) const;
  [[nodiscard]] at::Tensor attend(const layer_pass& pass, const operands& with, const at::Tensor& hidden) const;
  void back_block(const layer_pass& pass, const operands& from, const at::Tensor& hidden, const at::Tensor& d_mixed,
                  const operands& d_from) const;
  [[nodiscard]] at::Tensor by_head(const at::Tensor& rows) const;
  [[nodiscard]] double scale() const;
  [[nodiscard]] std::int64_t block_rows() const;

  shape shape_;
};

} // namespace mneme
