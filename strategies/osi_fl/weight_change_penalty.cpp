#include "strategies/osi_fl/weight_change_penalty.hpp"
#include "strategies/shared/quadratic_penalty.hpp"
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
namespace mneme {

loss_ref weight_change_penalty(const model& net, double weight) {
  auto importance = at::zeros({net.size()}, at::kFloat); // 2 * weight / size of each tensor
  for (const auto& entry : net.layout())
    if (!entry.buffer && entry.size > 0)
      importance.narrow(0, entry.offset, entry.size).fill_(2.0 * weight / static_cast<double>(entry.size));
  return quadratic_objective(fmt::format("weight change penalty {} {}", weight, net.identity()),
                             {{.term = "held_back", .constant = importance}});
}

} // namespace mneme
