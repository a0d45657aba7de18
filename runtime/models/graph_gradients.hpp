/// graph_gradients: writes the gradients of one model's autograd graph to the model's row of a gradient sink.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

/// A trained parameter of a graph.
struct graph_parameter {
  at::Tensor value{}; ///< A leaf of the graph.
  at::Tensor place{}; ///< View of the parameter's part of the sink's row.
};
/// A result of a graph, and the gradient of the loss with respect to it.
struct graph_result {
  at::Tensor value{}, gradient{}; ///< An undefined `gradient` means that no loss reads the result.
};

/// Gradients of the loss with respect to `leaves`; undefined for a leaf on which no result with a gradient depends.
/// @param keeps true: the graph is retained for another backward pass
[[nodiscard]] std::vector<at::Tensor> gradients_by(const std::vector<at::Tensor>& leaves,
                                                   const std::vector<graph_result>& results, bool keeps = false);
/// Writes a gradient to its part of the sink, or adds it if out.add. An undefined gradient counts as zero.
void deliver(const at::Tensor& gradient, const at::Tensor& place, const gradient_sink& out);

/// Backpropagates from the results that have a gradient and require gradients. If no such result depends on a
/// parameter, its gradient is zero, or unchanged if `out` adds.
void graph_gradients(const std::vector<graph_parameter>& parameters, const std::vector<graph_result>& results,
                     const gradient_sink& out);

} // namespace mneme
