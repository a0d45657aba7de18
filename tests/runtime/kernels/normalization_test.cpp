#include "runtime/base/rng.hpp"
#include "runtime/kernels/normalization.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>
using namespace mneme;

namespace {

std::vector<float> drawn(std::int64_t n, std::uint64_t seed, double center = 0.0) {
  rng_stream draw({.seed = seed, .purpose = first_method_purpose});
  std::vector<float> values(static_cast<std::size_t>(n));
  for (auto& value : values)
    value = static_cast<float>(center + draw.normal());
  return values;
}

/// Column sums of f(index) in double.
template <class F>
std::vector<double> column_sums(std::int64_t rows, std::int64_t columns, F f) {
  std::vector<double> sums(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * columns); ++i)
    sums[i % sums.size()] += f(i);
  return sums;
}

/// Largest difference relative to the largest value, or to 1.
template <class T, class U>
double worst(const std::vector<T>& ours, const std::vector<U>& expected) {
  REQUIRE(ours.size() == expected.size());
  double difference = 0.0, largest = 1.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(ours[i]) - static_cast<double>(expected[i])));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return difference / largest;
}

// Sizes near the boundaries of blocks (64 rows) and registers (16 columns).
constexpr std::int64_t row_counts[] = {1, 2, 63, 64, 65, 200};
constexpr std::int64_t column_counts[] = {1, 3, 15, 16, 17, 40};

} // namespace

TEST_CASE("column sums of any size equal sums in double", "[kernels]") {
  for (const auto rows : row_counts)
    for (const auto columns : column_counts) {
      INFO(rows << " x " << columns);
      const auto in = drawn(rows * columns, 1);
      const auto sums = column_sums(rows, columns, [&](std::size_t i) { return in[i]; });
      auto plain = drawn(columns, 2), added = plain;
      std::vector<double> expected(added.begin(), added.end());
      for (std::size_t c = 0; c < expected.size(); ++c)
        expected[c] -= 0.5 * sums[c];
      kernels::sum_columns(plain.data(), in.data(), rows, columns, 1.0F, false);
      kernels::sum_columns(added.data(), in.data(), rows, columns, -0.5F, true);
      CHECK(worst(plain, sums) < 1e-6);
      CHECK(worst(added, expected) < 1e-6);
    }
}

TEST_CASE("gradients that pass a ReLU are stored and summed", "[kernels]") {
  for (const auto rows : row_counts)
    for (const auto columns : column_counts)
      for (const bool add : {false, true}) {
        INFO(rows << " x " << columns << ", adding " << add);
        const auto before = drawn(rows * columns, 1), y = drawn(rows * columns, 2);
        const auto shown = [&](std::size_t i) { return y[i] <= 0.0F ? 0.0F : before[i]; };
        auto d = before, out = drawn(columns, 3);
        auto expected = column_sums(rows, columns, shown);
        for (std::size_t c = 0; c < expected.size(); ++c)
          expected[c] = -0.5 * expected[c] + (add ? out[c] : 0.0F);
        kernels::sum_active_columns(out.data(), d.data(), y.data(), rows, columns, -0.5F, add);
        CHECK(worst(out, expected) < 1e-6);
        for (std::size_t i = 0; i < d.size(); ++i)
          CHECK(d[i] == shown(i));
      }
}

TEST_CASE("variances of values far from 0 keep their digits", "[kernels]") {
  for (const auto rows : row_counts)
    for (const auto columns : column_counts) {
      INFO(rows << " x " << columns);
      const auto x = drawn(rows * columns, 1, 1000.0); // in float32, squares of 1e6 would hide 1
      const auto place = static_cast<std::size_t>(columns);
      const auto from_pivot = [&](std::size_t i) { return static_cast<double>(x[i]) - x[i % place]; };
      std::vector<double> sums(place), squares(place);
      kernels::shifted_moments(x.data(), rows, columns, sums.data(), squares.data());
      CHECK(worst(sums, column_sums(rows, columns, from_pivot)) < 1e-6);
      CHECK(worst(squares, column_sums(rows, columns, [&](std::size_t i) { return from_pivot(i) * from_pivot(i); })) <
            1e-6);
    }
}

TEST_CASE("columns are scaled and shifted, and a ReLU keeps NaN", "[kernels]") {
  for (const auto columns : column_counts) {
    auto x = drawn(5 * columns, 1);
    x[0] = NAN;
    const auto scale = drawn(columns, 2), shift = drawn(columns, 3);
    const auto place = static_cast<std::size_t>(columns);
    for (const bool relu : {false, true}) {
      std::vector<float> y(x.size());
      kernels::scale_columns(x.data(), 5, columns, scale.data(), shift.data(), relu, y.data());
      CHECK(std::isnan(y[0]));
      for (std::size_t i = 1; i < y.size(); ++i) {
        const double value = static_cast<double>(x[i]) * scale[i % place] + shift[i % place];
        CHECK(std::abs(y[i] - (relu ? std::max(value, 0.0) : value)) < 1e-6);
      }
    }
  }
}

TEST_CASE("gradients of a normalization pass only where its ReLU was active", "[kernels]") {
  for (const auto rows : row_counts)
    for (const auto columns : column_counts)
      for (const bool relu : {false, true}) {
        INFO(rows << " x " << columns << ", ReLU " << relu);
        const auto d = drawn(rows * columns, 1), x = drawn(rows * columns, 2), y = drawn(rows * columns, 3);
        const auto mean = drawn(columns, 4), scale = drawn(columns, 5), slope = drawn(columns, 6),
                   shift = drawn(columns, 7);
        const kernels::normalized in{.d = d.data(),
                                     .x = x.data(),
                                     .y = relu ? y.data() : nullptr,
                                     .mean = mean.data(),
                                     .rows = rows,
                                     .columns = columns};
        const auto place = static_cast<std::size_t>(columns);
        const auto shown = [&](std::size_t i) { return relu && y[i] <= 0.0F ? 0.0 : static_cast<double>(d[i]); };
        const auto centered = [&](std::size_t i) { return static_cast<double>(x[i]) - mean[i % place]; };
        std::vector<double> sums(place), products(place), expected(x.size());
        std::vector<float> dx(x.size());
        kernels::sum_gradients(in, sums.data(), products.data());
        CHECK(worst(sums, column_sums(rows, columns, shown)) < 1e-6);
        CHECK(worst(products, column_sums(rows, columns, [&](std::size_t i) { return shown(i) * centered(i); })) <
              1e-6);
        kernels::scale_gradients(in, scale.data(), slope.data(), shift.data(), dx.data());
        for (std::size_t i = 0; i < dx.size(); ++i)
          expected[i] = shown(i) * scale[i % place] + centered(i) * slope[i % place] + shift[i % place];
        CHECK(worst(dx, expected) < 1e-6);
      }
}
