#include "runtime/models/cosine_head.hpp"
#include "runtime/models/l2_normalize.hpp"
#include <ATen/TensorOperators.h>
namespace mneme {

// Axes: K models, B rows, C classes of the pass, D features.

at::Tensor cosine_head::function(const function_pass& pass, const at::Tensor& in) const {
  const auto weight = pass.weights_at(shape_.weight_offset, {-1, shape_.in});
  return stacked_product(l2_rows(in), l2_rows(weight.narrow(1, pass.classes.low, pass.classes.size()))) *
         pass.weights_at(shape_.scale_offset, {1, 1});
}

} // namespace mneme
