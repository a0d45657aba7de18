#include "runtime/models/graph_gradients.hpp"
#include "runtime/base/autograd_on.hpp"
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/autograd.h>
namespace mneme {

void graph_gradients(const std::vector<graph_parameter>& parameters, const std::vector<graph_result>& results,
                     const gradient_sink& out) {
  std::vector<at::Tensor> leaves, ends, slopes;
  for (const auto& parameter : parameters)
    leaves.push_back(parameter.value);
  for (const auto& result : results)
    if (result.slope.defined() && result.value.requires_grad()) {
      ends.push_back(result.value);
      slopes.push_back(result.slope);
    }
  std::vector<at::Tensor> gradients(leaves.size());
  if (!ends.empty() && !leaves.empty()) {
    const autograd_on tracking;
    gradients = torch::autograd::grad(ends, leaves, slopes, false, false, true);
  }
  const at::NoGradGuard written;
  for (std::size_t j = 0; j < leaves.size(); ++j) {
    const auto& place = parameters[j].place;
    const bool is_reached = gradients[j].defined();
    if (out.add && is_reached)
      place.add_(gradients[j], out.scale);
    else if (!out.add)
      is_reached ? place.copy_(gradients[j]).mul_(out.scale) : place.zero_();
  }
}

} // namespace mneme
