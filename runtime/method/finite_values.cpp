#include "runtime/method/finite_values.hpp"
#include "runtime/kernels/elementwise.hpp"
#include <ATen/ops/isfinite.h>
namespace mneme {

bool is_finite(const at::Tensor& values) {
  if (!at::isFloatingType(values.scalar_type()))
    return true;
  if (!values.is_cpu() || values.scalar_type() != at::kFloat || !values.is_contiguous())
    return at::isfinite(values).all().item<bool>();
  bool finite = true;
  kernels::check_finite(finite, values.const_data_ptr<float>(), values.numel());
  return finite;
}

std::string non_finite_parameter(const at::Tensor& weights, const model& net) {
  for (const auto& parameter : net.layout())
    if (!is_finite(weights.narrow(0, parameter.offset, parameter.size)))
      return parameter.name;
  return {};
}

std::string non_finite_tensor(const tensor_map& tensors, const model& net) {
  for (const auto& [name, value] : tensors) {
    if (is_finite(value))
      continue;
    const bool is_net = name == flat_weights && value.dim() == 1 && value.numel() == net.size();
    const auto parameter = is_net ? non_finite_parameter(value, net) : std::string{};
    return parameter.empty() ? name : parameter;
  }
  return {};
}

} // namespace mneme
