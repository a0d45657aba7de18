/// token_embedding: the first layers of nets that read text, which convert tokens to vectors.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Converts a number of an input row to a token in 0 .. vocabulary - 1; floats hold tokens below 2^24 exactly. Throws
/// std::runtime_error that states the number if the number is not such a token.
[[nodiscard]] std::int64_t token_of(float value, std::int64_t vocabulary);

/// A trained vector per token (PyTorch's Embedding). Optionally adds a trained vector per position, and the vector of
/// text type 0, which all tokens have.
class token_embedding_layer final : public kernel_layer {
public:
  struct shape {
    std::int64_t tokens = 1;                             ///< T, the number of tokens of a row.
    std::int64_t vocabulary = 0;                         ///< V, the number of tokens of the vocabulary.
    std::int64_t channels = 0;                           ///< D, the width of a token's vector.
    std::int64_t padding = -1;                           ///< Token whose vector has no gradient; -1: none.
    std::int64_t positions = 0, types = 0;               ///< Rows of the two tables; only the first ones are read.
    std::int64_t weight_offset = 0;                      ///< Offset of [V, D] within [P].
    std::int64_t position_offset = -1, type_offset = -1; ///< Offsets of [positions, D], [types, D]; -1: none.
    bool frozen = false;                                 ///< true: parameters get no gradients.
  };
  explicit token_embedding_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t width(class_range) const override { return shape_.tokens * shape_.channels; }
  [[nodiscard]] bool is_function(bool on_cpu) const override { return !on_cpu; }
  /// @param in [K, B, T] tokens @param out [K, B, T * D]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  /// @pre data.d_in is null: tokens have no gradient
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  /// Tokens are constants without gradients.
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  void backward_table(const gradient_sink& sink, std::int64_t k, std::int64_t offset, std::int64_t rows,
                      const at::Tensor& first_rows) const;
  /// Returns the tokens [B * T] of model k, on the device of `in`.
  [[nodiscard]] at::Tensor tokens_of(const at::Tensor& in, std::int64_t k) const;

  shape shape_;
};

/// Selects one token of every row.
class chosen_token_layer final : public kernel_layer {
public:
  /// @param token index from 0
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
