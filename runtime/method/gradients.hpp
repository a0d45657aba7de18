/// gradients: derivatives within a program, by LibTorch's autograd.
#pragma once
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

/// What becomes of the graph behind an output.
enum class graph_use : std::uint8_t {
  last,           ///< It is freed.
  again,          ///< It is kept for another call.
  differentiable, ///< It is kept, and the gradients are functions of the inputs themselves: for second derivatives.
};

/// The same values as a variable of its own that wants a gradient. @param value of a floating type
[[nodiscard]] at::Tensor leaf_of(const at::Tensor& value);

/// d sum(output) / d input, for each input and with its shape; zeros where the output does not depend on it. Throws
/// c10::Error if no input wants a gradient. @pre called in a program
[[nodiscard]] std::vector<at::Tensor> gradients_of(const at::Tensor& output, const std::vector<at::Tensor>& inputs,
                                                   graph_use graph = graph_use::last);

} // namespace mneme
