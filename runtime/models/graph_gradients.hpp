/// graph_gradients: what autograd's graph of one model leaves in the model's row of a sink.
#pragma once
#include "runtime/models/model.hpp"
namespace mneme {

struct graph_parameter {
  at::Tensor value{}; ///< A leaf of the graph.
  at::Tensor place{}; ///< Its part of the sink's row, a view.
};
struct graph_result {
  at::Tensor value{}, slope{}; ///< The slope, the gradient by it, may be undefined.
};

/// Gradients by `leaves`, undefined where no result with a slope depends on one. @param keeps the graph serves again
[[nodiscard]] std::vector<at::Tensor> gradients_by(const std::vector<at::Tensor>& leaves,
                                                   const std::vector<graph_result>& results, bool keeps = false);
/// Writes a gradient, zero if it is undefined, to its part of the sink, or adds it there.
void deliver(const at::Tensor& gradient, const at::Tensor& place, const gradient_sink& out);

/// Goes back from the results that have a slope and that the graph leads to. Places of parameters that no result
/// depends on become zero; where `out` adds they stay as they are.
void graph_gradients(const std::vector<graph_parameter>& parameters, const std::vector<graph_result>& results,
                     const gradient_sink& out);

} // namespace mneme
