#include "tools/study/statistics.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using Catch::Approx;

TEST_CASE("t quantiles equal the printed tables") {
  // Fisher and Yates, "Statistical Tables", table III, two-sided 5 %.
  CHECK(t_quantile_975(1) == Approx(12.7062047).epsilon(1e-7));
  CHECK(t_quantile_975(2) == Approx(4.3026527).epsilon(1e-7));
  CHECK(t_quantile_975(4) == Approx(2.7764451).epsilon(1e-7));
  CHECK(t_quantile_975(9) == Approx(2.2621572).epsilon(1e-7));
  CHECK(t_quantile_975(29) == Approx(2.0452296).epsilon(1e-7));
  CHECK(t_quantile_975(1'000'000) == Approx(1.959966).epsilon(1e-6));
}

TEST_CASE("mean, deviation and interval of a sample equal values worked out by hand") {
  // 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, deviation sqrt(13), half width 4.3026527 * sqrt(13 / 3).
  const auto three = statistics_of({2.0, 4.0, 9.0});
  CHECK(three.count == 3);
  CHECK(*three.mean == 5.0);
  CHECK(*three.deviation == Approx(3.6055512755));
  CHECK(*three.half_width == Approx(8.9566858950));
  const auto one = statistics_of({7.0});
  CHECK(*one.mean == 7.0);
  CHECK_FALSE(one.deviation);
  CHECK_FALSE(one.half_width);
  CHECK_FALSE(statistics_of({}).mean);
}

TEST_CASE("equal values share the mean of their ranks") {
  CHECK(ranks_of({70.0, 90.0, 70.0, 60.0}, false) == std::vector<double>{2.5, 1.0, 2.5, 4.0});
  CHECK(ranks_of({70.0, 90.0, 70.0, 60.0}, true) == std::vector<double>{2.5, 4.0, 2.5, 1.0});
}
