#include "runtime/population/staleness.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

TEST_CASE("staleness_weight() is 1 for an upload of age 0 under every rule") {
  for (const auto rule : {staleness_kind::polynomial, staleness_kind::constant, staleness_kind::hinge})
    CHECK(staleness_weight({.staleness = rule}, 0) == 1.0);
}

TEST_CASE("staleness_weight() of older uploads equals Xie et al. 2019") {
  const rounds_section polynomial{.staleness = staleness_kind::polynomial, .staleness_exponent = 0.5};
  CHECK(staleness_weight(polynomial, 3) == 0.5); // 4^-1/2
  CHECK(staleness_weight(polynomial, 8) == Catch::Approx(1.0 / 3.0).epsilon(1e-15));
  CHECK(staleness_weight({.staleness = staleness_kind::constant}, 1000) == 1.0);
}

TEST_CASE("staleness_weight() with hinge decays only above its bound") {
  const rounds_section hinge{.staleness = staleness_kind::hinge, .staleness_exponent = 10.0, .staleness_bound = 4};
  CHECK(staleness_weight(hinge, 4) == 1.0);
  CHECK(staleness_weight(hinge, 5) == 1.0 / 11.0); // 1 / (10 * (5 - 4) + 1)
  CHECK(staleness_weight(hinge, 7) == 1.0 / 31.0);
}
