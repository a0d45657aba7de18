/// dense: the fully connected layer y = x W^T + b of one model on a CPU, and its gradients.
#pragma once
#include <cstdint>
namespace mneme {

/// Activation function after a layer.
enum class activation : std::uint8_t { none, relu, leaky, sigmoid, tanh, silu };
/// True for activations that layers with parameters compute. For the others, a network adds a separate layer.
[[nodiscard]] constexpr bool is_built_in(activation kind) {
  return kind == activation::none || kind == activation::relu;
}
/// Returns `kind` if layers with parameters compute it; otherwise none.
[[nodiscard]] constexpr activation built_in(activation kind) { return is_built_in(kind) ? kind : activation::none; }

/// Shape and weight offsets of a fully connected layer.
struct dense_layer {
  std::int64_t in = 0, out = 0;
  std::int64_t weight_offset = 0, bias_offset = 0; ///< Offsets of W [out, in] and b [out] within [P]; bias -1: none.
  activation after = activation::none;             ///< none or relu, see is_built_in().
  bool head = false; ///< true: it has one output per class, and a pass computes only the outputs of the pass's classes.

  [[nodiscard]] bool biased() const { return bias_offset >= 0; }
  /// For a head, the layer restricted to classes low .. high - 1; otherwise the layer itself.
  [[nodiscard]] dense_layer rows_for(std::int64_t low, std::int64_t high) const;
};

/// Computes y [rows, out] from x [rows, in]. @param weights the model's weights, [P]
void dense_forward(const dense_layer& layer, const float* weights, const float* x, std::int64_t rows, float* y);

/// Arguments of dense_backward(): x and y are those of the forward pass.
struct dense_gradients {
  const float* weights = nullptr; ///< [P]
  const float *x = nullptr, *y = nullptr;
  float* d_y = nullptr; ///< [rows, out]; overwritten if the layer has a ReLU.
  float* d_x = nullptr; ///< [rows, in], result; null: not computed.
  std::int64_t rows = 0;
  /// The gradients of the layer's weights, times `scale`, are added to `before` [P]; the sums are written to `into`
  /// [P]. `weights`, `before` and `into` may be the same memory: each weight is read for the last time before it is
  /// written. If `before` is null, the gradients are added to zeros. If `into` is null, the gradients of the weights
  /// are not computed.
  const float* before = nullptr;
  float* into = nullptr;
  float scale = 1.0F;
};
/// Computes the gradients of a layer's input and weights from the gradient d_y of its output.
void dense_backward(const dense_layer& layer, const dense_gradients& in);

} // namespace mneme
