#include "runtime/base/bounded_number_set.hpp"
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;

TEST_CASE("distinct_numbers stores each number once and returns them in ascending order") {
  for (const std::uint32_t step : {1U, 4096U, 0x10000U, 0x01000001U}) { // equal low bits, or equal high bits
    bounded_number_set numbers(100);
    std::set<std::uint32_t> expected;
    for (std::uint32_t i = 0; i < 250; ++i) {
      const auto number = (i * 37 % 100) * step;
      CHECK(numbers.insert(number) == expected.insert(number).second);
    }
    CHECK(std::move(numbers).ascending() == std::vector<std::uint32_t>(expected.begin(), expected.end()));
  }
}

TEST_CASE("distinct_numbers without numbers is empty") { CHECK(bounded_number_set(0).ascending().empty()); }
