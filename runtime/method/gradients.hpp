/// gradients: derivatives in programs, by LibTorch's autograd.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// What happens to the graph of an output after differentiation.
enum class graph_use : std::uint8_t {
  last,           ///< Freed.
  again,          ///< Kept for another call.
  differentiable, ///< Kept; gradients have graphs, too, for second derivatives.
};

/// Returns `value` as a leaf variable that requires a gradient. @param value of a floating-point type
[[nodiscard]] at::Tensor leaf_of(const at::Tensor& value);

/// Returns d sum(output) / d input with the shape of each input; zeros if the output does not depend on it. Throws
/// c10::Error if no input requires a gradient. @pre called in a program
[[nodiscard]] std::vector<at::Tensor> gradients_of(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                                                   graph_use graph = graph_use::last);

/// log softmax over the last axis. On a CPU the bits of a row, and of its derivatives of any order, do not depend on
/// other rows. This does not hold for second derivatives of LibTorch's log_softmax.
[[nodiscard]] at::Tensor stacked_log_softmax(const at::Tensor& logits);

} // namespace mneme
