#include "runtime/models/proxy_head.hpp"
#include "runtime/models/l2_normalize.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/exp.h>
namespace mneme {

// Axes: K models, B rows, C classes of the pass, N proxies of a class, D features.

at::Tensor proxy_head::function(const function_pass& pass, const at::Tensor& in) const {
  const auto rows = pass.weights_at(shape_.weight_offset, {-1, shape_.proxies * shape_.in})
                        .narrow(1, pass.classes.low, pass.classes.size())
                        .unflatten(2, {shape_.proxies, shape_.in})
                        .flatten(1, 2); // [K, C N, D]
  const auto cosines = stacked_product(l2_rows(in), l2_rows(rows));
  const auto similarity = (cosines * 2.0 - 2.0).unflatten(2, {-1, shape_.proxies}); // [K, B, C, N]
  const auto raised = by_element(similarity, [](const at::Tensor& values) { return at::exp(values); });
  const auto mean = (raised * similarity).sum(3) / raised.sum(3);
  return mean * pass.weights_at(shape_.scale_offset, {1, 1});
}

} // namespace mneme
