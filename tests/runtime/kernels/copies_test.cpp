// Portable arithmetic gives the bits of AVX2 on every machine and uses AVX-512 versions of some kernels. A process
// selects versions once, so this program starts itself with each selection and compares the outputs.
#include "runtime/base/rng.hpp"
#include "runtime/kernels/dropout.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/fold.hpp"
#include "runtime/kernels/gaussian_pixels.hpp"
#include "runtime/kernels/normalization.hpp"
#include "runtime/kernels/pooling.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/kernels/sigmoid.hpp"
#include "runtime/kernels/token_rows.hpp"
#include "runtime/kernels/winograd.hpp"
#include "tests/support/drawn_floats.hpp"
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>
using namespace mneme;

namespace copies_of_kernels {
namespace {

using numbers = std::vector<float>;

/// FNV-1a over the bits of results. All NaNs count as equal: which of two NaNs an addition returns depends on the
/// compiler.
class bits_of_results {
public:
  void add(const numbers& values) {
    for (const float value : values)
      put(std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value));
  }
  void add(const std::vector<double>& values) {
    for (const double value : values)
      put(std::isnan(value) ? 0x7ff8000000000000U : std::bit_cast<std::uint64_t>(value));
  }
  void add(const std::vector<std::uint8_t>& values) {
    for (const auto value : values)
      put(value);
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

private:
  void put(std::uint64_t bits) { hash_ = (hash_ ^ bits) * 0x100000001b3U; }
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Includes zeros of both signs, subnormal and large numbers, infinities and NaN.
numbers odd(std::int64_t n, std::uint64_t seed) {
  constexpr float special[] = {0.0F,
                               -0.0F,
                               1e-40F,
                               -1e-40F,
                               1e30F,
                               -95.0F,
                               std::numeric_limits<float>::infinity(),
                               88.0F,
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  auto values = test::drawn_floats(n, seed, 6.0);
  for (std::size_t i = seed % 5, next = 0; i < values.size(); i += 7)
    values[i] = special[next++ % std::size(special)];
  return values;
}

std::vector<std::uint8_t> bytes(std::int64_t n) {
  std::vector<std::uint8_t> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 37 + i / 7);
  return values;
}

constexpr std::int64_t lengths[] = {1, 2, 3, 5, 8, 11, 16, 17, 31, 33, 64, 100, 257, 1000};

void elements(std::ostream& out) {
  for (const auto n : lengths) {
    bits_of_results bits;
    const auto a = odd(n, 1), b = odd(n, 2), c = odd(n, 3);
    const auto each = [&](auto step) {
      auto x = a;
      step(x);
      bits.add(x);
    };
    const auto p = static_cast<std::int64_t>(a.size());
    each([&](numbers& x) { kernels::relu(x.data(), p); });
    each([&](numbers& x) { kernels::relu_backward(x.data(), b.data(), p); });
    each([&](numbers& x) { kernels::add(x.data(), b.data(), c.data(), p, true); });
    each([&](numbers& x) { kernels::scale(x.data(), p, 0.3F); });
    each([&](numbers& x) { kernels::add_proximal_gradient(x.data(), b.data(), c.data(), p, 0.1F); });
    each([&](numbers& x) {
      kernels::normalize(x.data(), b.data(), p, {.brightness = 1.1F, .scale = 0.3F, .shift = 2.0F});
    });
    each([&](numbers& x) { kernels::normalize(x.data(), bytes(n).data(), p, {.scale = 0.01F, .shift = -0.7F}); });
    each([&](numbers& x) { kernels::convert_to_float(x.data(), bytes(n).data(), p); });
    each([&](numbers& x) {
      kernels::sgd(x.data(), b.data(), nullptr, p, {.learning_rate = 0.1F, .weight_decay = 0.01F});
    });
    auto v = test::drawn_floats(n, 4), m = test::drawn_floats(n, 5), w = test::drawn_floats(n, 6);
    kernels::sgd(w.data(), b.data(), v.data(), p, {.learning_rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.01F});
    bits.add(w), bits.add(v);
    for (auto& square : v)
      square = std::abs(square);
    kernels::adam(w.data(), test::drawn_floats(n, 7).data(), m.data(), v.data(), p,
                  {.decay = 0.01F, .step_size = 0.1F});
    bits.add(w), bits.add(m), bits.add(v);
    std::vector<double> totals(3);
    kernels::add_squares(totals[0], m.data(), p);
    kernels::add_products(totals[1], m.data(), w.data(), p);
    kernels::add_square_distance(totals[2], m.data(), w.data(), p);
    bits.add(totals);
    std::vector<double> sums(static_cast<std::size_t>(n), 0.25);
    const std::vector<kernels::weighted_upload> uploads{{m.data(), 3.0}, {w.data(), 0.7}, {v.data(), 1.1}};
    kernels::fold(sums.data(), uploads, p);
    bits.add(sums);
    each([&](numbers& x) { kernels::sigmoid(x.data(), b.data(), p); });
    each([&](numbers& x) { kernels::sigmoid_backward(x.data(), b.data(), c.data(), p); });
    each([&](numbers& x) { kernels::hyperbolic_tangent(x.data(), b.data(), p); });
    each([&](numbers& x) { kernels::gelu(x.data(), b.data(), p); });
    each([&](numbers& x) { kernels::gelu_backward(x.data(), b.data(), c.data(), p); });
    const stream_name stream = stream_name_of({.seed = 5, .purpose = first_method_purpose});
    auto mask = bytes(n);
    kernels::draw_dropout_mask(stream, 0x4321, mask.data(), p);
    bits.add(mask);
    each([&](numbers& x) { kernels::apply_dropout_mask(b.data(), mask.data(), 1.5F, x.data(), p); });
    bits.add(std::vector<std::uint8_t>{kernels::gaussian_pixels(mask, m.data(), stream)});
    bits.add(mask);
    out << "elements " << n << ' ' << bits.value() << '\n';
  }
}

void rows(std::ostream& out) {
  for (const std::int64_t columns : {1, 3, 7, 10, 16, 19, 48, 100})
    for (const std::int64_t count : {1, 5, 70, 150}) {
      bits_of_results bits;
      const std::int64_t n = count * columns;
      const auto width = static_cast<std::size_t>(columns);
      const auto x = test::drawn_floats(n, 1), y = test::drawn_floats(n, 2), weight = test::drawn_floats(columns, 3),
                 bias = test::drawn_floats(columns, 4);
      auto d = test::drawn_floats(n, 5), sums = test::drawn_floats(columns, 6);
      std::vector<double> first(width), second(width);
      kernels::sum_rows({.in = x.data(),
                         .rows = count,
                         .columns = columns,
                         .before = sums.data(),
                         .out = sums.data(),
                         .scale = 0.3F});
      bits.add(sums);
      kernels::sum_columns(sums.data(), x.data(), count, columns, 0.7F, true);
      bits.add(sums);
      kernels::sum_active_columns(sums.data(), d.data(), y.data(), count, columns, 0.7F, true);
      bits.add(sums), bits.add(d);
      kernels::shifted_moments(x.data(), count, columns, first.data(), second.data());
      bits.add(first), bits.add(second);
      kernels::scale_columns(x.data(), count, columns, weight.data(), bias.data(), true, d.data());
      bits.add(d);
      for (const float* shown : {y.data(), static_cast<const float*>(nullptr)}) {
        const kernels::normalized in{d.data(), x.data(), shown, sums.data(), count, columns};
        kernels::sum_gradients(in, first.data(), second.data());
        bits.add(first), bits.add(second);
        auto dx = d;
        kernels::scale_gradients(in, weight.data(), bias.data(), sums.data(), dx.data());
        bits.add(dx);
      }
      auto pooled = test::drawn_floats(columns, 7);
      kernels::mean_pool(1, count, columns, x.data(), pooled.data());
      bits.add(pooled);

      const kernels::normalized_rows layer{x.data(), weight.data(), bias.data(), count, columns};
      numbers out_rows(x.size()), statistics(2 * static_cast<std::size_t>(count)), dx(x.size());
      kernels::normalize_rows(out_rows.data(), statistics.data(), layer);
      kernels::normalize_rows_backward(dx.data(), first.data(), second.data(), y.data(), statistics.data(), layer);
      bits.add(out_rows), bits.add(statistics), bits.add(dx), bits.add(first), bits.add(second);
      kernels::softmax_rows(out_rows.data(), count, columns, 0.8F);
      bits.add(out_rows);
      auto hostile = odd(n, 8);
      kernels::softmax_rows(hostile.data(), count, columns, 0.8F);
      bits.add(hostile);

      std::vector<std::int64_t> labels(static_cast<std::size_t>(count));
      numbers weights(labels.size(), 0.5F);
      for (std::size_t row = 0; row < labels.size(); ++row)
        labels[row] = static_cast<std::int64_t>(row) % columns, weights[row] = row % 3 == 2 ? 0.0F : 0.5F;
      double loss = 0.0;
      kernels::cross_entropy_of_rows(loss, {x.data(), labels.data(), weights.data(), dx.data(), count, columns});
      bits.add(std::vector<double>{loss}), bits.add(dx);
      out << "rows " << count << " x " << columns << ' ' << bits.value() << '\n';
    }
}

void products(std::ostream& out) {
  for (const std::int64_t k : {1, 3, 4, 7, 8, 13, 16, 40, 271, 600})
    for (const std::int64_t n : {1, 3, 4, 5, 8, 10, 17, 33, 64, 100, 131})
      for (const std::int64_t m : {1, 2, 3, 5, 7, 10, 26}) {
        bits_of_results bits;
        const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(n * k, 2), bias = test::drawn_floats(n, 3);
        auto c = test::drawn_floats(m * n, 4);
        kernels::multiply(kernels::dot_product{.a = a.data(),
                                               .a_row = k,
                                               .b = b.data(),
                                               .b_row = k,
                                               .c = c.data(),
                                               .c_row = n,
                                               .m = m,
                                               .n = n,
                                               .k = k,
                                               .bias = bias.data()});
        bits.add(c);
        kernels::multiply(kernels::row_product{.a = a.data(),
                                               .a_row = 1,
                                               .a_step = m,
                                               .b = b.data(),
                                               .b_row = n,
                                               .before = c.data(),
                                               .c = c.data(),
                                               .c_row = n,
                                               .m = m,
                                               .n = n,
                                               .k = k,
                                               .scale = -0.5F});
        bits.add(c);
        kernels::multiply(kernels::row_product{.a = a.data(),
                                               .a_row = k,
                                               .a_step = 1,
                                               .b = b.data(),
                                               .b_row = n,
                                               .c = c.data(),
                                               .c_row = n,
                                               .m = m,
                                               .n = n,
                                               .k = k});
        bits.add(c);
        out << "products " << m << " x " << k << " x " << n << ' ' << bits.value() << '\n';
      }
}

void convolutions(std::ostream& out) {
  kernels::scratch memory;
  for (const std::int64_t channels : {16, 48})
    for (const std::int64_t filters : {16, 32}) {
      const kernels::conv_shape shape{3, 9, 7, channels, filters, 3, 1, 1};
      const std::int64_t pixels = shape.rows * shape.out_height() * shape.out_width();
      const auto x = test::drawn_floats(shape.rows * shape.height * shape.width * channels, 1);
      const auto w = test::drawn_floats(shape.terms() * filters, 2), bias = test::drawn_floats(filters, 3);
      auto y = test::drawn_floats(pixels * filters, 4), dx = x, dw = w;
      bits_of_results bits;
      kernels::winograd_convolve(shape, x.data(), w.data(), bias.data(), true, y.data(), memory);
      kernels::winograd_convolve_back(shape, y.data(), w.data(), dx.data(), true, memory);
      kernels::winograd_correlate(shape, x.data(), y.data(), dw.data(), 0.3F, true, memory);
      bits.add(y), bits.add(dx), bits.add(dw);
      out << "convolutions " << channels << " to " << filters << ' ' << bits.value() << '\n';
    }
}

/// Output of the next test case with this selection.
std::string printed(const std::string& copies) {
  const auto command = "MNEME_ARITHMETIC=portable MNEME_KERNELS=" + copies + " /proc/" + std::to_string(::getpid()) +
                       "/exe '[.bits]' --rng-seed 1";
  auto* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char part[4096];
  while (const auto length = std::fread(part, 1, sizeof part, pipe))
    text.append(part, length);
  REQUIRE(::pclose(pipe) == 0);
  return text;
}

} // namespace
} // namespace copies_of_kernels

TEST_CASE("prints the bits of kernels", "[.bits]") {
  copies_of_kernels::elements(std::cout);
  copies_of_kernels::rows(std::cout);
  copies_of_kernels::products(std::cout);
  copies_of_kernels::convolutions(std::cout);
}

TEST_CASE("AVX-512 versions of kernels in portable arithmetic have the bits of AVX2", "[kernels]") {
  std::istringstream widest(copies_of_kernels::printed("")), half(copies_of_kernels::printed("avx2"));
  std::string line, expected;
  int lines = 0;
  for (; std::getline(half, expected) && std::getline(widest, line); ++lines)
    CHECK(line == expected);
  CHECK(lines > 800);
}
