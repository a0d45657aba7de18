#include "runtime/base/ceil_div.hpp"
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
using namespace mneme;

TEST_CASE("ceil_div rounds up, without overflow at the largest integers") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(ceil_div(7, 3) == 3);
  CHECK(ceil_div(6, 3) == 2);
  CHECK(ceil_div(0, 3) == 0);
  CHECK(ceil_div(-1, 3) == 0);
  CHECK(ceil_div<std::int64_t>(10, most) == 1); // (10 + most - 1) / most is negative
  CHECK(ceil_div<std::int64_t>(most, most - 1) == 2);
  CHECK(ceil_div<std::uint64_t>(std::numeric_limits<std::uint64_t>::max(), 2) == std::uint64_t{1} << 63);
}
