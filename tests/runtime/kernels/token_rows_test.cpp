#include "runtime/kernels/token_rows.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/tensors.hpp"
#include <cmath>
#include <limits>
using namespace mneme;
using namespace mneme::test;

namespace {

float* data(at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* data(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

/// Largest
/// ours - LibTorch's
/// / scale, with LibTorch in float64.
double worst(const at::Tensor& ours, const at::Tensor& theirs, const at::Tensor& scale) {
  return ((ours.to(at::kDouble) - theirs).abs() / scale).max().item<double>();
}

} // namespace

TEST_CASE("GELU and its gradient equal LibTorch's in double precision", "[kernels]") {
  const auto x = at::cat({at::linspace(-14, 14, 100'003), at::tensor({0.0F, 1e-30F, -100.0F, 3e4F, -1e30F})});
  const auto wide = x.to(at::kDouble);
  auto y = at::empty_like(x);
  kernels::gelu(data(y), data(x), x.numel());
  CHECK(worst(y, at::gelu(wide), wide.abs() + 1e-30) < 3e-7);
  const auto d = drawn(x.sizes(), 1), wide_d = d.to(at::kDouble);
  auto dx = at::empty_like(x);
  kernels::gelu_backward(data(dx), data(d), data(x), x.numel() - 1); // LibTorch's gradient at -1e30 is NaN
  CHECK(worst(dx.narrow(0, 0, x.numel() - 1), at::gelu_backward(wide_d, wide).narrow(0, 0, x.numel() - 1),
              wide_d.abs().narrow(0, 0, x.numel() - 1) + 1e-30) < 5e-7);
}

TEST_CASE("GELU does not depend on the position of a value and keeps NaN", "[kernels]") {
  const auto x = drawn({67}, 2);
  auto whole = at::empty({67});
  kernels::gelu(data(whole), data(x), 67);
  for (std::int64_t i = 0; i < 67; ++i) {
    float alone = 0.0F;
    kernels::gelu(&alone, data(x) + i, 1);
    CHECK(alone == data(whole)[i]);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float seen = 0.0F, value = 1.0F;
  kernels::gelu(&seen, &nan, 1);
  CHECK(std::isnan(seen));
  kernels::gelu_backward(&seen, &value, &nan, 1);
  CHECK(std::isnan(seen));
}

TEST_CASE("softmax of rows equals LibTorch's in double precision", "[kernels]") {
  for (const std::int64_t columns : {1, 3, 16, 17, 50, 197}) {
    INFO(columns << " columns");
    const auto x = drawn({5, columns}, 3) * 6.0F;
    auto p = x.clone();
    kernels::softmax_rows(data(p), 5, columns, 0.3F);
    const auto wide = at::softmax(x.to(at::kDouble) * static_cast<double>(0.3F), 1);
    CHECK(worst(p, wide, wide) < 2e-6);
  }
}

TEST_CASE("scores far below the largest neither overflow nor become NaN", "[kernels]") {
  auto x = at::tensor({-3e38F, 3e38F, 0.0F, -50.0F}).view({2, 2});
  kernels::softmax_rows(data(x), 2, 2, 1.0F);
  CHECK(data(x)[0] < 1e-37F);
  CHECK(data(x)[1] == 1.0F);
  CHECK(std::abs(data(x)[3] / std::exp(-50.0F) - 1.0F) < 1e-6F);
}

TEST_CASE("layer-normalized rows and their gradients equal LibTorch's in double precision", "[kernels]") {
  for (const std::int64_t columns : {1, 5, 16, 48, 77}) {
    INFO(columns << " columns");
    const std::int64_t rows = 70; // more than a block
    const auto x = drawn({rows, columns}, 5) * 3.0F + 1.0F, d = drawn({rows, columns}, 6), weight = drawn({columns}, 7),
               bias = drawn({columns}, 8);
    auto y = at::empty_like(x), dx = at::empty_like(x), statistics = at::empty({rows, 2});
    auto d_weight = at::ones({columns}, at::kDouble), d_bias = at::ones({columns}, at::kDouble);
    const kernels::normalized_rows normalized{data(x), data(weight), data(bias), rows, columns, 1e-3F};
    kernels::normalize_rows(data(y), data(statistics), normalized);
    kernels::normalize_rows_backward(data(dx), d_weight.mutable_data_ptr<double>(), d_bias.mutable_data_ptr<double>(),
                                     data(d), data(statistics), normalized);
    const auto wide = x.to(at::kDouble).set_requires_grad(true), w = weight.to(at::kDouble).set_requires_grad(true),
               b = bias.to(at::kDouble).set_requires_grad(true);
    const auto expected = at::layer_norm(wide, {columns}, w, b, 1e-3F);
    (expected * d.to(at::kDouble)).sum().backward();
    const auto ones = at::ones_like(expected);
    CHECK(worst(y, expected.detach(), ones) < 5e-6);
    CHECK(worst(dx, wide.grad(), ones) < 2e-5);
    CHECK(worst(d_weight - 1.0, w.grad(), w.grad().abs() + 1.0) < 1e-5); // added to the existing gradient
    CHECK(worst(d_bias - 1.0, b.grad(), b.grad().abs() + 1.0) < 1e-5);
    auto alone = at::empty_like(x);
    kernels::normalize_rows_backward(data(alone), nullptr, nullptr, data(d), data(statistics), normalized);
    CHECK(same_bits(alone, dx));
  }
}
