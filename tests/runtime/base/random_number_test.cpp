#include "runtime/base/random_number.hpp"
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;

TEST_CASE("random_number() gives another number each time") {
  std::set<std::uint64_t> numbers;
  for (int i = 0; i < 100; ++i)
    numbers.insert(random_number());
  CHECK(numbers.size() == 100);
}
