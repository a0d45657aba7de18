#include "runtime/models/graph_gradients.hpp"
#include "runtime/base/autograd_on.hpp"
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/autograd.h>
namespace mneme {

std::vector<at::Tensor> gradients_by(const std::vector<at::Tensor>& leaves, const std::vector<graph_result>& results,
                                     bool keeps) {
  std::vector<at::Tensor> ends, gradients;
  for (const auto& result : results)
    if (result.gradient.defined() && result.value.requires_grad()) {
      ends.push_back(result.value);
      gradients.push_back(result.gradient);
    }
  if (ends.empty() || leaves.empty())
    return std::vector<at::Tensor>(leaves.size());
  const autograd_on tracking;
  return torch::autograd::grad(ends, leaves, gradients, keeps, false, true);
}

void deliver(const at::Tensor& gradient, const at::Tensor& place, const gradient_sink& out) {
  const at::NoGradGuard written;
  if (out.add && gradient.defined())
    place.add_(gradient, out.scale);
  else if (!out.add && !gradient.defined())
    place.zero_();
  else if (!out.add)
    out.scale == 1.0F ? place.copy_(gradient) : place.copy_(gradient).mul_(out.scale);
}

void graph_gradients(const std::vector<graph_parameter>& parameters, const std::vector<graph_result>& results,
                     const gradient_sink& out) {
  std::vector<at::Tensor> leaves;
  for (const auto& parameter : parameters)
    leaves.push_back(parameter.value);
  const auto gradients = gradients_by(leaves, results);
  for (std::size_t j = 0; j < leaves.size(); ++j)
    deliver(gradients[j], parameters[j].place, out);
}

} // namespace mneme
