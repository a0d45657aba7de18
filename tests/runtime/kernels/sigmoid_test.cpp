#include "runtime/kernels/sigmoid.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/tensors.hpp"
#include <cmath>
#include <functional>
#include <limits>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Largest difference of a function between our kernel and LibTorch in float64.
struct pair {
  std::string name;
  std::function<void(float*, const float*, std::int64_t)> ours;
  std::function<at::Tensor(const at::Tensor&)> wide;
};

const std::vector<pair> pairs{{"sigmoid", kernels::sigmoid, [](const at::Tensor& x) { return at::sigmoid(x); }},
                              {"tanh", kernels::hyperbolic_tangent, [](const at::Tensor& x) { return at::tanh(x); }}};

at::Tensor applied(const pair& tried, const at::Tensor& x) {
  auto y = at::empty_like(x);
  tried.ours(y.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel());
  return y;
}

} // namespace

TEST_CASE("sigmoid, its gradient and tanh equal LibTorch's in double precision", "[kernels]") {
  const auto x =
      at::cat({at::linspace(-30, 30, 100'003), at::linspace(-1, 1, 20'001), at::tensor({0.0F, 1e-20F, -200.0F, 3e4F})});
  for (const auto& tried : pairs) {
    INFO(tried.name);
    const auto known = tried.wide(x.to(at::kDouble));
    CHECK(((applied(tried, x) - known).abs() / (known.abs() + 1e-28)).max().item<double>() < 4e-7);
  }
  const auto y = applied(pairs[0], x), d = drawn(x.sizes(), 1), wide = at::sigmoid(x.to(at::kDouble));
  auto dx = at::empty_like(x);
  kernels::sigmoid_backward(dx.mutable_data_ptr<float>(), d.const_data_ptr<float>(), y.const_data_ptr<float>(),
                            x.numel());
  CHECK(((dx - d * wide * (1.0 - wide)).abs() / (d.abs() + 1e-30)).max().item<double>() < 5e-7);
}

TEST_CASE("an activation does not depend on its position and keeps NaN", "[kernels]") {
  const auto x = drawn({67}, 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& tried : pairs) {
    INFO(tried.name);
    const auto whole = applied(tried, x);
    for (std::int64_t i = 0; i < 67; ++i)
      CHECK(applied(tried, x.narrow(0, i, 1)).item<float>() == whole[i].item<float>());
    float seen = 0.0F;
    tried.ours(&seen, &nan, 1);
    CHECK(std::isnan(seen));
  }
}
