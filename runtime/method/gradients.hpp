/// gradients: derivatives in programs, computed by LibTorch's autograd.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// Use of an output's graph after differentiation.
enum class graph_use : std::uint8_t {
  last,           ///< Frees the graph.
  again,          ///< Keeps the graph for another call.
  differentiable, ///< Keeps the graph, and records the gradients' own graphs for second derivatives.
};

/// Returns `value` detached, as an autograd leaf that requires a gradient. The result shares the memory of `value`.
/// @param value floating-point tensor
[[nodiscard]] at::Tensor leaf_of(const at::Tensor& value);

/// Returns d sum(output) / d input with the shape of each input, or zeros if the output does not depend on that input.
/// Throws c10::Error if no input requires a gradient. @pre called in a program
[[nodiscard]] std::vector<at::Tensor> gradients_of(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                                                   graph_use graph = graph_use::last);

/// Log-softmax over the last axis. On a CPU, the bits of a row and of its derivatives of any order do not depend on
/// other rows. LibTorch's log_softmax does not guarantee this for second derivatives.
[[nodiscard]] at::Tensor stacked_log_softmax(const at::Tensor& logits);

} // namespace mneme
