#include "runtime/method/gradients.hpp"
#include "runtime/models/function.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log.h>
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

at::Tensor stacked_log_softmax(const at::Tensor& logits) {
  const auto shifted = logits - logits.detach().amax(-1, /*keepdim=*/true); // the shift changes no derivative
  return shifted - by_element(by_element(shifted, at::exp).sum(-1, /*keepdim=*/true), at::log);
}

} // namespace mneme
