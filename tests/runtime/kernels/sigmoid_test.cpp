#include "runtime/kernels/sigmoid.hpp"
#include <ATen/ATen.h> // before Catch2: both define CHECK, and the last one wins

#include "tests/support/tensors.hpp"
#include <cmath>
#include <functional>
#include <limits>
using namespace mneme;
using namespace mneme::test;

namespace {

/// A function of one value and its slope times d, by our kernels and in float64 by LibTorch.
struct pair {
  std::string name;
  std::function<void(float*, const float*, std::int64_t)> forward;
  std::function<void(float*, const float*, const float*, std::int64_t)> backward; ///< dx, d, x or y, n
  bool reads_result = false;                                                      ///< backward() takes y.
  std::function<at::Tensor(const at::Tensor&)> wide;
};

const std::vector<pair> pairs{
    {"sigmoid", kernels::sigmoid, kernels::sigmoid_backward, true, [](const at::Tensor& x) { return at::sigmoid(x); }},
    {"tanh", kernels::hyperbolic_tangent, kernels::hyperbolic_tangent_backward, true,
     [](const at::Tensor& x) { return at::tanh(x); }},
    {"silu", kernels::silu, kernels::silu_backward, false, [](const at::Tensor& x) { return at::silu(x); }},
    {"leaky", [](float* y, const float* x, std::int64_t n) { kernels::leaky_relu(y, x, n, 0.01F); },
     [](float* dx, const float* d, const float* x, std::int64_t n) {
       kernels::leaky_relu_backward(dx, d, x, n, 0.01F);
     },
     false, [](const at::Tensor& x) { return at::leaky_relu(x, static_cast<double>(0.01F)); }}};

at::Tensor applied(const pair& tried, const at::Tensor& x) {
  auto y = at::empty_like(x);
  tried.forward(y.mutable_data_ptr<float>(), x.const_data_ptr<float>(), x.numel());
  return y;
}

} // namespace

TEST_CASE("activations and their slopes equal LibTorch's in double precision", "[kernels]") {
  const auto x =
      at::cat({at::linspace(-30, 30, 100'003), at::linspace(-1, 1, 20'001), at::tensor({0.0F, 1e-20F, -200.0F, 3e4F})});
  const auto d = drawn(x.sizes(), 1);
  for (const auto& tried : pairs) {
    INFO(tried.name);
    const auto y = applied(tried, x);
    const auto wide_x = x.to(at::kDouble).set_requires_grad(true), wide = tried.wide(wide_x);
    const auto known = wide.detach();
    CHECK(((y - known).abs() / (known.abs() + 1e-28)).max().item<double>() < 4e-7);
    auto dx = at::empty_like(x);
    tried.backward(dx.mutable_data_ptr<float>(), d.const_data_ptr<float>(),
                   (tried.reads_result ? y : x).const_data_ptr<float>(), x.numel());
    wide.backward(d.to(at::kDouble));
    CHECK(((dx - wide_x.grad()).abs() / (d.abs() + 1e-30)).max().item<double>() < 5e-7);
  }
}

TEST_CASE("an activation does not depend on its place, and NaN stays", "[kernels]") {
  const auto x = drawn({67}, 2);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& tried : pairs) {
    INFO(tried.name);
    const auto whole = applied(tried, x);
    for (std::int64_t i = 0; i < 67; ++i)
      CHECK(applied(tried, x.narrow(0, i, 1)).item<float>() == whole[i].item<float>());
    float seen = 0.0F, one = 1.0F;
    tried.forward(&seen, &nan, 1);
    CHECK(std::isnan(seen));
    if (tried.name != "leaky") { // whose slope is one of two numbers
      tried.backward(&seen, &one, &nan, 1);
      CHECK(std::isnan(seen));
    }
  }
}
