#include "runtime/kernels/elementwise.hpp"
#include "tests/support/drawn_floats.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <vector>
using namespace mneme;
using Catch::Approx;

TEST_CASE("sums of products and of squares equal sums in double for any alignment", "[kernels]") {
  for (const std::int64_t n : {0, 1, 5, 15, 16, 17, 33, 64, 3071, 3072}) {
    CAPTURE(n);
    const auto a = test::drawn_floats(n + 3, 1), b = test::drawn_floats(n + 3, 2);
    double expected = 2.5, squares = 2.5;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      expected += static_cast<double>(a[i]) * b[i];
      squares += static_cast<double>(a[i]) * a[i];
    }
    double sum = 2.5, of_squares = 2.5; // the previous values are kept
    kernels::add_products(sum, a.data(), b.data(), n);
    kernels::add_squares(of_squares, a.data(), n);
    CHECK(sum == Approx(expected).epsilon(1e-13));
    CHECK(of_squares == Approx(squares).epsilon(1e-13));
    for (std::size_t shift = 1; shift < 4; ++shift) {
      std::vector<float> moved(shift);
      moved.insert(moved.end(), a.begin(), a.begin() + n);
      double again = 2.5;
      kernels::add_products(again, moved.data() + shift, b.data(), n);
      CHECK(again == sum);
    }
  }
}
