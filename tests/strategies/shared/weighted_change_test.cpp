#include "strategies/shared/averaging.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

at::Tensor all(double value) { return at::full({5}, value, at::kFloat); }

} // namespace

TEST_CASE("changes are summed relative to each upload's own start") {
  weighted_change sum;
  CHECK(sum.empty());
  const auto old_start = all(1.0), new_start = all(10.0);
  sum.add(all(3.0), old_start, 1.0);  // + 2
  sum.add(all(13.0), new_start, 2.0); // + 6
  sum.add(all(0.0), old_start, 3.0);  // - 3
  CHECK(at::equal(sum.take(all(100.0), 0.5), all(102.5)));
  CHECK(sum.empty());
}

TEST_CASE("a change much smaller than its weights is not lost, for any number of starts") {
  weighted_change sum;
  for (int k = 0; k < 40; ++k) // 2^20 + k / 8 is exact in float32
    sum.add(all(1048576.125 + k), all(1048576.0 + k), 0.3);
  CHECK(at::allclose(sum.take(all(0.0), 1.0), all(40 * 0.3 * 0.125), 1e-6));
}

TEST_CASE("an upload and its start must have the size of the first one") {
  weighted_change sum;
  CHECK_THROWS_AS(sum.add(all(1.0), at::zeros({4}), 1.0), std::invalid_argument);
  sum.add(all(1.0), all(0.0), 1.0);
  CHECK_THROWS_AS(sum.add(at::ones({4}), at::zeros({4}), 1.0), std::invalid_argument);
  CHECK_THROWS_AS(sum.add(all(1.0), all(0.0), 0.0), std::invalid_argument);
}
