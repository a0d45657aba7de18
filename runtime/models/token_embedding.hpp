/// Rows of tokens to vectors: the first layers of nets that read text.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// A token of a row: numbers from 0 below the vocabulary, as floats, which hold them exactly below 2^24. Another number
/// throws std::runtime_error with the number in words.
[[nodiscard]] std::int64_t token_of(float value, std::int64_t vocabulary);

/// A learnt vector per token, PyTorch's Embedding, and, where they are learnt, one per position and that of the first
/// kind of text, which all tokens here are, added to it.
class token_embedding_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1;                             ///< T, of a row.
    std::int64_t vocabulary = 0;                         ///< V
    std::int64_t channels = 0;                           ///< D
    std::int64_t padding = -1;                           ///< Token whose vector has no gradient; -1: none.
    std::int64_t positions = 0, types = 0;               ///< Rows of their tables, of which the first ones are read.
    std::int64_t weight_offset = 0;                      ///< [V, D]
    std::int64_t position_offset = -1, type_offset = -1; ///< [positions, D], [types, D]; -1: none
    bool frozen = false;                                 ///< Parameters get no gradients.
  };
  explicit token_embedding_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.channels; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// in [K, B, T] tokens
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  /// @pre no gradient of tokens is wanted
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  /// Tokens are constants: no gradient reaches them.
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  void back_table(const gradient_sink& sink, std::int64_t k, std::int64_t offset, std::int64_t rows,
                  const at::Tensor& first_rows) const;
  /// [B * T] of model k, on the device of `in`.
  [[nodiscard]] at::Tensor tokens_of(const at::Tensor& in, std::int64_t k) const;

  shape shape_;
};

/// Passes on one token of every row or image.
class chosen_token_layer final : public kernel_layer {
public:
  /// @param token counted from 0
  chosen_token_layer(std::int64_t channels, std::int64_t token) : channels_(channels), token_(token) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return channels_; }
  [[nodiscard]] bool joins_functions() const override { return true; }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  std::int64_t channels_, token_;
};

} // namespace mneme
