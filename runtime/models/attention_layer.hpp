/// attention_layer: multi-head self-attention over the tokens of a row.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Scaled dot-product attention (Vaswani et al. 2017, section 3.2): softmax(Q K^T / sqrt(d)) V for each head. The input
/// holds query, key and value of each token, concatenated. The backward pass recomputes the softmax. This takes 2 % of
/// a block's time and saves heads * tokens^2 floats per row. If the net's inputs are tokens, padding tokens
/// are masked. A row that contains only padding yields zeros. A causal layer masks the tokens after each query instead.
class attention_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1;
    std::int64_t queries = 1; ///< Results are computed for the first `queries` tokens only.
    std::int64_t heads = 1;
    std::int64_t channels = 0; ///< Channels of a token, summed over all heads.
    std::int64_t padding = -1; ///< Id of the padding token in the net's inputs, which is masked; -1: no mask.
    bool causal = false;       ///< A token attends to itself and the tokens before it only; requires padding = -1.
  };
  explicit attention_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.queries * shape_.channels; }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// @param in [K, B, tokens * 3 * channels] @param out [K, B, queries * channels]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  struct operands;
  [[nodiscard]] operands operands_of(const at::Tensor& in) const;
  [[nodiscard]] operands copies_of(const layer_pass& pass, const operands& from) const;
  [[nodiscard]] at::Tensor hidden_in(const at::Tensor* inputs) const;
  [[nodiscard]] at::Tensor attend(const layer_pass& pass, const operands& with, const at::Tensor& hidden) const;
  void backward_block(const layer_pass& pass, const operands& from, const at::Tensor& hidden, const at::Tensor& d_mixed,
                      const operands& d_from) const;
  [[nodiscard]] at::Tensor by_head(const at::Tensor& rows) const;
  [[nodiscard]] double scale() const;
  [[nodiscard]] std::int64_t block_rows() const;

  shape shape_;
};

} // namespace mneme
