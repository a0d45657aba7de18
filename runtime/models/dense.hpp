/// dense: y = x W^T + b of one model on a CPU, and its gradients.
#pragma once
#include <cstdint>
namespace mneme {

/// What follows a layer.
enum class activation : std::uint8_t { none, relu, leaky, sigmoid, tanh, silu };
/// True for what layers with parameters do themselves; a network adds the others as layers of their own.
[[nodiscard]] constexpr bool is_built_in(activation kind) {
  return kind == activation::none || kind == activation::relu;
}
/// The part of `kind` that layers with parameters do themselves.
[[nodiscard]] constexpr activation built_in(activation kind) { return is_built_in(kind) ? kind : activation::none; }

/// A fully connected layer of a net.
struct dense_layer {
  std::int64_t in = 0, out = 0;
  std::int64_t weight_offset = 0, bias_offset = 0; ///< Offsets of [out, in] and [out] in a model's [P]; -1: no bias.
  activation after = activation::none;             ///< Built in.
  bool head = false;                               ///< Has a row per class, and computes those of the pass only.

  [[nodiscard]] bool biased() const { return bias_offset >= 0; }
  /// The rows that a pass over `classes` computes, as a layer of their own.
  [[nodiscard]] dense_layer rows_for(std::int64_t low, std::int64_t high) const;
};

/// y [rows, out] of x [rows, in].
void dense_forward(const dense_layer& layer, const float* weights, const float* x, std::int64_t rows, float* y);

struct dense_gradients {
  const float* weights = nullptr; ///< [P]
  const float *x = nullptr, *y = nullptr;
  float* d_y = nullptr; ///< [rows, out]; overwritten where a ReLU follows.
  float* d_x = nullptr; ///< [rows, in], written; null: not wanted.
  std::int64_t rows = 0;
  /// Gradients of the layer's weights, times `scale`, are added to `before` [P] and written to `into` [P]. All three
  /// may be the same memory: each weight is read for the last time before it is written. Null: added to zeros, and no
  /// gradients are wanted.
  const float* before = nullptr;
  float* into = nullptr;
  float scale = 1.0F;
};
void dense_backward(const dense_layer& layer, const dense_gradients& in);

} // namespace mneme
