#include "runtime/method/finite_values.hpp"
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
using namespace mneme;

namespace {

model_ref linear_net() {
  for (const auto& entry : models())
    if (entry.name == "linear")
      return entry.make()->build({1, 1, 3}, 2).value();
  return nullptr;
}

} // namespace

TEST_CASE("the first tensor that is not finite is named, within a flat model by its parameter") {
  const auto net = linear_net();
  tensor_map tensors;
  tensors.put("count", at::ones({2}, at::kLong));
  tensors.put("gram", at::full({3}, std::numeric_limits<double>::max(), at::kDouble));
  auto weights = at::ones({net->size()});
  tensors.put(flat_weights, weights);
  CHECK(non_finite_tensor(tensors, *net).empty());
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    weights.fill_(1.0).select(0, net->size() - 1).fill_(wrong);
    CHECK(non_finite_tensor(tensors, *net) == net->layout().back().name);
  }
  tensors.put("features", at::full({2, 2}, std::nan("")));
  weights.fill_(1.0);
  CHECK(non_finite_tensor(tensors, *net) == "features");
  CHECK_FALSE(is_finite(at::full({4, 4}, std::nan("")).t()));
}
