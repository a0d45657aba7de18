#include "runtime/kernels/products.hpp"
#include "tests/support/drawn_floats.hpp"
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <vector>
using namespace mneme;

namespace {

// Sizes near all boundaries of tiles: 1, 2, 4, 5 rows; 1, 2, 4, 8, 16, 32, 64 columns and terms.
constexpr std::int64_t sizes[] = {1, 2, 3, 5, 6, 7, 10, 13, 16, 17, 23, 33, 63, 64, 70, 131};
constexpr std::int64_t terms[] = {1, 2, 3, 5, 6, 7, 10, 13, 16, 17, 23, 33, 63, 64, 70, 131, 256, 271};

} // namespace

TEST_CASE("a row product of any size equals the sum in double", "[kernels]") {
  for (const auto m : sizes)
    for (const auto n : sizes)
      for (const auto k : {std::int64_t{1}, std::int64_t{10}, std::int64_t{131}}) {
        const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(k * n, 2),
                   before = test::drawn_floats(m * n, 4);
        auto c = before;
        kernels::multiply(kernels::row_product{.a = a.data(),
                                               .a_row = k,
                                               .a_step = 1,
                                               .b = b.data(),
                                               .b_row = n,
                                               .before = c.data(),
                                               .c = c.data(),
                                               .c_row = n,
                                               .m = m,
                                               .n = n,
                                               .k = k,
                                               .scale = -0.5F});
        double worst = 0.0;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += static_cast<double>(a[i * k + p]) * b[p * n + j];
            const double expected = before[i * n + j] - 0.5 * sum;
            worst = std::max(worst, std::abs(c[i * n + j] - expected));
          }
        if (worst >= 1e-5)
          FAIL("m " << m << " n " << n << " k " << k << ": worst difference " << worst);
      }
}

TEST_CASE("a dot product matrix of any size equals the sum in double", "[kernels]") {
  for (const auto m : sizes)
    for (const auto n : {std::int64_t{1}, std::int64_t{3}, std::int64_t{4}, std::int64_t{10}, std::int64_t{33}})
      for (const auto k : terms) {
        const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(n * k, 2), bias = test::drawn_floats(n, 3);
        std::vector<float> c(static_cast<std::size_t>(m * n), 7.0F);
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
        double worst = 0.0;
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0.0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += static_cast<double>(a[i * k + p]) * b[j * k + p];
            worst = std::max(worst, std::abs(c[i * n + j] - (sum + bias[j])));
          }
        if (worst >= 2e-5)
          FAIL("m " << m << " n " << n << " k " << k << ": worst difference " << worst);
      }
}

TEST_CASE("a row of a product has the same bits for any number of rows", "[kernels]") {
  std::vector<std::int64_t> lengths{255, 256, 300}; // long sums use other tiles
  for (std::int64_t k = 1; k < 40; ++k)
    lengths.push_back(k);
  for (const std::int64_t k : lengths)
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {23, 1}, {23, 2}, {23, 3}, {23, 4}, {23, 5}, {23, 10}, {23, 37}, {25, 5}, {25, 37}}) {
      const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(n * k, 2),
                 bias = test::drawn_floats(std::max(m, n), 3), before = test::drawn_floats(m * n, 4);
      const auto rows_of = [&, n = n](std::int64_t first, std::int64_t rows, bool dots) {
        std::vector<float> c(before.begin() + first * n, before.begin() + (first + rows) * n);
        if (dots)
          kernels::multiply(kernels::dot_product{.a = a.data() + first * k,
                                                 .a_row = k,
                                                 .b = b.data(),
                                                 .b_row = k,
                                                 .c = c.data(),
                                                 .c_row = n,
                                                 .m = rows,
                                                 .n = n,
                                                 .k = k,
                                                 .bias = bias.data()});
        else
          kernels::multiply(kernels::row_product{.a = a.data() + first * k,
                                                 .a_row = k,
                                                 .a_step = 1,
                                                 .b = b.data(),
                                                 .b_row = n,
                                                 .before = c.data(),
                                                 .c = c.data(),
                                                 .c_row = n,
                                                 .m = rows,
                                                 .n = n,
                                                 .k = k,
                                                 .scale = -0.3F});
        return c;
      };
      for (const bool dots : {false, true}) {
        const auto values = rows_of(0, m, dots);
        for (std::int64_t i = 0; i < m; ++i)
          if (std::memcmp(rows_of(i, 1, dots).data(), values.data() + i * n,
                          static_cast<std::size_t>(n) * sizeof(float)))
            FAIL("row " << i << " of k " << k << ", n " << n << (dots ? ", dots" : ", rows"));
      }
    }
}

TEST_CASE("a row product added to another tensor has the bits of adding in place", "[kernels]") {
  for (const std::int64_t n : {1, 10, 37, 100})
    for (const std::int64_t m : {3, 10}) {
      const std::int64_t k = 7;
      const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(k * n, 2),
                 before = test::drawn_floats(m * n, 4);
      auto in_place = before;
      std::vector<float> elsewhere(before.size(), 9.0F);
      kernels::row_product product{.a = a.data(),
                                   .a_row = k,
                                   .a_step = 1,
                                   .b = b.data(),
                                   .b_row = n,
                                   .c_row = n,
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .scale = -0.3F};
      product.before = product.c = in_place.data();
      kernels::multiply(product);
      product.before = before.data();
      product.c = elsewhere.data();
      kernels::multiply(product);
      CHECK(std::memcmp(in_place.data(), elsewhere.data(), before.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("large row products with packed operands have the bits of single rows", "[kernels]") {
  // The minimum for packing is 24 rows, 512 terms and 64 columns; panels have 128 terms, blocks 96 rows. 200 columns
  // leave a remainder.
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {24, 64, 512}, {30, 200, 600}, {97, 300, 513}, {131, 192, 640}, {200, 90, 641}})
    for (const bool across : {false, true}) // a(i, p) is row-major or column-major
      for (const bool adds : {false, true}) {
        const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(k * (n + 3), 2),
                   before = test::drawn_floats(m * n, 4);
        std::vector<float> together(before.size(), 9.0F), alone(before.size(), 9.0F);
        const auto rows_of = [&](std::int64_t first, std::int64_t rows, std::vector<float>& to) {
          kernels::multiply(kernels::row_product{.a = a.data() + first * (across ? 1 : k),
                                                 .a_row = across ? 1 : k,
                                                 .a_step = across ? m : 1,
                                                 .b = b.data(),
                                                 .b_row = n + 3,
                                                 .before = adds ? before.data() + first * n : nullptr,
                                                 .c = to.data() + first * n,
                                                 .c_row = n,
                                                 .m = rows,
                                                 .n = n,
                                                 .k = k,
                                                 .scale = -0.3F});
        };
        rows_of(0, m, together);
        for (std::int64_t i = 0; i < m; ++i)
          rows_of(i, 1, alone);
        if (std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)))
          FAIL("m " << m << " n " << n << " k " << k << (across ? " across" : "") << (adds ? " added" : ""));
      }
}

TEST_CASE("long dot product matrices have the bits of single rows for any number of cached columns", "[kernels]") {
  for (const auto& [m, n, k] :
       std::vector<std::array<std::int64_t, 3>>{{40, 70, 512}, {64, 33, 700}, {120, 24, 256}, {24, 9, 9000}}) {
    const auto a = test::drawn_floats(m * k, 1), b = test::drawn_floats(n * k, 2), bias = test::drawn_floats(n, 3);
    std::vector<float> together(static_cast<std::size_t>(m * n)), alone(together.size());
    const auto rows_of = [&](std::int64_t first, std::int64_t rows, std::vector<float>& to) {
      kernels::multiply(kernels::dot_product{.a = a.data() + first * k,
                                             .a_row = k,
                                             .b = b.data(),
                                             .b_row = k,
                                             .c = to.data() + first * n,
                                             .c_row = n,
                                             .m = rows,
                                             .n = n,
                                             .k = k,
                                             .bias = bias.data()});
    };
    rows_of(0, m, together);
    for (std::int64_t i = 0; i < m; ++i)
      rows_of(i, 1, alone);
    CHECK(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)) == 0);
  }
}
