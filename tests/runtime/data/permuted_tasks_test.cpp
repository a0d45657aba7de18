// Permuted tasks show the same rows with permuted pixels.
#include "runtime/data/task_stream.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

using order_of_pixels = std::vector<std::int32_t>;

order_of_pixels order_of(const pixel_map& map) {
  order_of_pixels order;
  for (const auto& taps : map.pixels) {
    CHECK(taps.weight == std::array<float, 4>{1, 0, 0, 0});
    order.push_back(taps.from[0]);
  }
  return order;
}

} // namespace

TEST_CASE("a task's permutation is bijective and equal for training and test rows", "[curriculum]") {
  scenario from;
  from.tasks = {.kind = task_kind::domain_incremental, .count = 10, .transform = task_transform::permute};
  const auto made = make_task_stream(from, hand_made_data(3, 6, {3, 5, 7})).value();
  REQUIRE(made.train->transforms.size() == 10);
  REQUIRE(made.test->transforms.size() == 10);
  CHECK(made.train->transforms[0].pixels.empty()); // the first task keeps the images unchanged
  CHECK(made.test->transforms[0].pixels.empty());
  std::set<order_of_pixels> orders;
  for (std::size_t t = 1; t < 10; ++t) {
    CAPTURE(t);
    const auto order = order_of(made.train->transforms[t]);
    CHECK(order == order_of(made.test->transforms[t]));
    CHECK(made.train->transforms[t].across_channels == made.test->transforms[t].across_channels);
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    order_of_pixels every(3 * 5 * 7);
    std::iota(every.begin(), every.end(), 0);
    CHECK(sorted == every);
    orders.insert(order);
  }
  CHECK(orders.size() == 9);
}
