#include "runtime/method/gradients.hpp"
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
namespace mneme {

at::Tensor leaf_of(const at::Tensor& value) { return value.detach().requires_grad_(true); }

std::vector<at::Tensor> gradients_of(const at::Tensor& output, const std::vector<at::Tensor>& inputs, graph_use graph) {
  const bool is_differentiable = graph == graph_use::differentiable;
  auto gradients = torch::autograd::grad({output}, inputs, {at::ones_like(output)}, graph != graph_use::last,
                                         is_differentiable, /*allow_unused=*/true);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!gradients[i].defined())
      gradients[i] = at::zeros_like(inputs[i]);
  return gradients;
}

} // namespace mneme
