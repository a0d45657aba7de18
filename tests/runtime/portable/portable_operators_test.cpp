#include "runtime/portable/matrix_products.hpp"
#include "runtime/portable/portable_operators.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

// The whole program uses portable operators, so expected values are computed with scalars.

namespace {

/// Values with many digits, equal on every machine.
at::Tensor numbers(at::IntArrayRef size, at::ScalarType type, double seed = 1.0) {
  auto values_of = at::empty(size, at::kDouble);
  auto* values = values_of.mutable_data_ptr<double>();
  double x = seed / 7.0;
  for (std::int64_t i = 0; i < values_of.numel(); ++i) {
    x = 3.9 * x * (1.0 - x); // the logistic map
    values[i] = x - 0.5;
  }
  return values_of.to(type);
}

template <class T>
T product_element(const at::Tensor& a, const at::Tensor& b, std::int64_t i, std::int64_t j) {
  T sum = 0;
  for (std::int64_t p = 0; p < a.size(1); ++p)
    sum = std::fma(a[i][p].item<T>(), b[p][j].item<T>(), sum);
  return sum;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) { return a.sizes() == b.sizes() && at::equal(a, b); }

struct portable_case {
  portable_case() { portable::use_portable_operators(); }
};

} // namespace

TEST_CASE_METHOD(portable_case, "a float64 product adds its terms in order, for any position of an element") {
  for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 1, 1}, {5, 13, 11}, {9, 40, 17}}) {
    const auto a = numbers({m, k}, at::kDouble), b = numbers({k, n}, at::kDouble, 2.0);
    const auto c = at::mm(a, b);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        REQUIRE(c[i][j].item<double>() == product_element<double>(a, b, i, j));
    CHECK(same_bits(at::mm(a.t().contiguous().t(), b.t().contiguous().t()), c));
  }
}

TEST_CASE_METHOD(portable_case, "float32 products do not depend on alignment and strides of operands") {
  const std::int64_t m = 7, k = 37, n = 19;
  const auto a = numbers({m, k}, at::kFloat), b = numbers({k, n}, at::kFloat, 3.0);
  const auto c = at::mm(a, b);
  CHECK(std::abs(c[3][4].item<float>() - product_element<float>(a, b, 3, 4)) < 1e-5F);
  for (std::int64_t offset = 0; offset < 16; ++offset) {
    auto room = at::zeros({offset + k * n}, at::kFloat);
    auto moved = room.narrow(0, offset, k * n).view({k, n});
    moved.copy_(b);
    CHECK(same_bits(at::mm(a, moved), c));
  }
  CHECK(same_bits(at::bmm(a.unsqueeze(0), b.unsqueeze(0))[0], c));
  CHECK(same_bits(at::mm(a, b.t().contiguous().t()), c));
  const auto added = numbers({m, n}, at::kFloat, 4.0);
  CHECK(at::allclose(at::addmm(added, a, b, 0.5, 2.0), added * 0.5 + c * 2.0, 1e-5, 1e-6));
  auto in_place = added.clone();
  in_place.addmm_(a, b);
  CHECK(same_bits(in_place, at::addmm(added, a, b)));
  CHECK(same_bits(at::mv(a, b.select(1, 0)), at::mm(a, b.narrow(1, 0, 1)).squeeze(1)));
}

TEST_CASE_METHOD(portable_case, "a convolution and its gradients are sums over the positions of filters") {
  const auto images = numbers({2, 4, 6, 5}, at::kDouble), filters = numbers({6, 2, 3, 3}, at::kDouble, 2.0),
             bias = numbers({6}, at::kDouble, 3.0);
  const auto out = at::conv2d(images, filters, bias, {2, 1}, {1, 1}, {1, 1}, 2);
  REQUIRE(out.sizes() == at::IntArrayRef({2, 6, 3, 5}));
  double expected = bias[4].item<double>();
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t x = 0; x < 3; ++x) // 0 at (1, 0), so that a read before the first column is detected
        if (x > 0)
          expected += filters[4][c][y][x].item<double>() * images[1][2 + c][1 + y][x - 1].item<double>();
  CHECK(std::abs(out[1][4][1][0].item<double>() - expected) < 1e-13);

  const std::vector<std::int64_t> none{0}, single{1}, twice{2};
  const auto flat = [&](const at::Tensor& x, const at::Tensor& w, at::IntArrayRef stride, at::IntArrayRef padding,
                        at::IntArrayRef dilation) {
    return at::convolution(x, w, bias, stride, padding, dilation, false, none, 2);
  };
  CHECK(same_bits(flat(images, filters, twice, single, single), flat(images, filters, {2, 2}, {1, 1}, {1, 1})));
  const auto rows = images.select(2, 0), taps = filters.select(2, 0);
  CHECK(at::allclose(flat(rows, taps, twice, single, single),
                     flat(rows.unsqueeze(2), taps.unsqueeze(2), {1, 2}, {0, 1}, {1, 1}).squeeze(2)));

  for (const bool transposed : {false, true}) {
    const auto weight = transposed ? numbers({4, 3, 3, 3}, at::kDouble, 5.0) : numbers({3, 4, 3, 3}, at::kDouble, 5.0);
    const auto apply = [&](const at::Tensor& x, const at::Tensor& w) {
      return at::convolution(x, w, at::Tensor(), {2, 2}, {1, 1}, {1, 1}, transposed, {0, 0}, 1);
    };
    const auto y = apply(images, weight), d = numbers({y.size(0), y.size(1), y.size(2), y.size(3)}, at::kDouble, 6.0);
    const auto [d_images, d_weight, d_bias] =
        at::convolution_backward(d, images, weight, at::OptionalIntArrayRef({y.size(1)}), {2, 2}, {1, 1}, {1, 1},
                                 transposed, {0, 0}, 1, {true, true, true});
    const auto slope = [&](const at::Tensor& dx, const at::Tensor& dw) { // the map is linear in each argument
      return std::pair((d * apply(dx, weight)).sum().item<double>(), (d * apply(images, dw)).sum().item<double>());
    };
    const auto dx = numbers({2, 4, 6, 5}, at::kDouble, 1.5);
    const auto dw = at::ones_like(weight) * 0.25;
    const auto [along_x, along_w] = slope(dx, dw);
    CHECK(std::abs(along_x - (d_images * dx).sum().item<double>()) < 1e-11);
    CHECK(std::abs(along_w - (d_weight * dw).sum().item<double>()) < 1e-11);
    CHECK(at::allclose(d_bias, d.sum({0, 2, 3})));
  }
}

TEST_CASE_METHOD(portable_case, "elementwise functions equal those of the C library") {
  const auto x = numbers({3, 7}, at::kFloat);
  const auto powers = at::exp(x);
  CHECK(std::abs(powers[2][6].item<double>() - std::exp(x[2][6].item<double>())) < 1e-6);
  CHECK(same_bits(at::exp(x.t()).t(), powers));
  CHECK(same_bits(at::exp(x[1].narrow(0, 3, 1)), powers[1].narrow(0, 3, 1)));
  CHECK(std::abs(at::log(at::full({1}, 2.0, at::kDouble)).item<double>() - std::log(2.0)) < 1e-15);
  CHECK(at::exp(at::zeros({2}, at::kLong)).scalar_type() == at::kFloat);
  CHECK(at::sqrt(at::full({9}, 2.0, at::kDouble))[8].item<double>() == std::sqrt(2.0));
  auto in_place = x.clone();
  in_place.tanh_();
  CHECK(std::abs(in_place[0][0].item<double>() - std::tanh(x[0][0].item<double>())) < 1e-6);
}

TEST_CASE_METHOD(portable_case, "factors, solutions, eigenvectors and orthogonal columns satisfy their definitions") {
  const auto rows = numbers({30, 12}, at::kDouble);
  const auto gram = at::mm(rows.t(), rows) + 0.1 * at::eye(12, at::kDouble);
  const auto [factor, info] = at::linalg_cholesky_ex(gram);
  CHECK(info.item<int>() == 0);
  CHECK(at::allclose(at::mm(factor, factor.t()), gram, 1e-12, 1e-12));
  const auto right = numbers({12, 3}, at::kDouble, 2.0);
  CHECK(at::allclose(at::mm(gram, at::cholesky_solve(right, factor)), right, 1e-9, 1e-10));
  CHECK(std::get<1>(at::linalg_cholesky_ex(-gram)).item<int>() == 1);
  const auto [values, vectors] = at::linalg_eigh(gram);
  CHECK(at::allclose(at::mm(gram, vectors), vectors * values, 1e-9, 1e-10));
  CHECK((values.diff() >= 0).all().item<bool>());
  const auto [q, r] = at::linalg_qr(rows);
  CHECK(at::allclose(at::mm(q, r), rows, 1e-12, 1e-13));
  CHECK(at::allclose(at::mm(q.t(), q), at::eye(12, at::kDouble), 1e-12, 1e-13));
}

TEST_CASE_METHOD(portable_case, "singular values and vectors reproduce the matrix, wide or tall") {
  for (const auto& matrix : {numbers({9, 4}, at::kDouble), numbers({4, 9}, at::kDouble, 2.0)}) {
    const auto [u, s, v] = at::linalg_svd(matrix, /*full_matrices=*/false);
    CHECK(s.sizes() == at::IntArrayRef({4}));
    CHECK((s.diff() <= 0).all().item<bool>());
    CHECK(at::allclose(at::mm(u * s, v), matrix, 1e-12, 1e-13));
    CHECK(at::allclose(at::mm(u.t(), u), at::eye(4, at::kDouble), 1e-12, 1e-13));
    CHECK(at::allclose(at::mm(v, v.t()), at::eye(4, at::kDouble), 1e-12, 1e-13));
  }
}

TEST_CASE_METHOD(portable_case, "factorizing a matrix with NaN or infinity is refused") {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    auto matrix = at::eye(3, at::kDouble);
    matrix[1][1].fill_(value);
    CHECK(std::get<1>(at::linalg_cholesky_ex(matrix)).item<std::int64_t>() != 0);
    CHECK_THROWS_WITH(at::linalg_svd(matrix, false), ContainsSubstring("linalg_svd: no convergence"));
  }
}

TEST_CASE_METHOD(portable_case, "a convolution whose tensors do not fit is refused") {
  const auto images = numbers({2, 5, 6, 6}, at::kFloat);
  const auto refused = [&](at::IntArrayRef filters, at::IntArrayRef stride, std::int64_t groups) {
    CHECK_THROWS_WITH(
        at::conv2d(images, numbers(filters, at::kFloat), {}, stride, at::IntArrayRef{0}, at::IntArrayRef{1}, groups),
        ContainsSubstring("is impossible"));
  };
  refused({4, 3, 3, 3}, {1}, 1); // filters of three channels
  refused({4, 1, 3, 3}, {1}, 5); // four filters of five groups
  refused({4, 5, 3, 3}, {0}, 1);
  refused({4, 5, 7, 3}, {1}, 1); // no row of the result
}

TEST_CASE_METHOD(portable_case, "operators without a portable version are refused by name") {
  CHECK_THROWS_WITH(at::linalg_eig(numbers({3, 3}, at::kDouble)),
                    ContainsSubstring("'aten::linalg_eig'") && ContainsSubstring("worker.arithmetic"));
  CHECK_THROWS_WITH(at::mm(numbers({2, 2}, at::kHalf), numbers({2, 2}, at::kHalf)), ContainsSubstring("Half"));
  CHECK(portable::is_portable_operator("aten::add_"));
  CHECK_FALSE(portable::is_portable_operator("aten::mkldnn_convolution"));
}
