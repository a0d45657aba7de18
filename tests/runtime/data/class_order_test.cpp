#include "runtime/data/task_stream.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

scenario ordered(class_order_choice choice) {
  scenario from;
  from.tasks.class_order = std::move(choice);
  from.data.name = "cifar100";
  from.key_places["tasks.class_order"] = "a.toml:3:5";
  return from;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> order) {
  std::sort(order.begin(), order.end());
  return order;
}

const std::vector<std::int64_t>& numbers_to_99() {
  static const auto values = [] {
    std::vector<std::int64_t> order(100);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }();
  return values;
}

} // namespace

TEST_CASE("class order np1993 is NumPy's whole permutation of seed 1993", "[curriculum]") {
  const std::vector<std::int64_t> known{68, 56, 78, 8,  23, 84, 90, 65, 74, 76, 40, 89, 3,  92, 55, 9,  26, 80, 43, 38,
                                        58, 70, 77, 1,  85, 19, 17, 50, 28, 53, 13, 81, 45, 82, 6,  59, 83, 16, 15, 44,
                                        91, 41, 72, 60, 79, 52, 20, 10, 31, 54, 37, 95, 14, 71, 96, 98, 97, 2,  64, 66,
                                        42, 22, 35, 86, 24, 34, 87, 21, 99, 0,  88, 27, 18, 94, 11, 12, 47, 25, 30, 46,
                                        62, 69, 36, 61, 7,  63, 75, 5,  32, 4,  51, 48, 73, 93, 39, 67, 29, 49, 57, 33};
  CHECK(class_order(ordered("np1993"), 100) == known);
  CHECK(legacy_numpy_permutation(1993, 1) == std::vector<std::int64_t>{0});
  CHECK(legacy_numpy_permutation(1993, 0).empty());
  CHECK(class_order(ordered("np1993"), 7)->size() == 7);
}

TEST_CASE("class order icarl87 is a permutation of 100 classes and refuses other numbers of classes", "[curriculum]") {
  const auto order = class_order(ordered("icarl87"), 100);
  REQUIRE(order);
  CHECK(std::vector(order->begin(), order->begin() + 5) == std::vector<std::int64_t>{87, 0, 52, 58, 44});
  CHECK(std::vector(order->end() - 3, order->end()) == std::vector<std::int64_t>{26, 35, 39});
  CHECK(sorted(*order) == numbers_to_99());
  CHECK_THAT(first_finding(class_order(ordered("icarl87"), 10)),
             ContainsSubstring("a.toml:3:5: class order icarl87 is for 100 classes, and cifar100 has 10"));
}

TEST_CASE("the seeded class order is a permutation that depends only on the seed", "[curriculum]") {
  auto from = ordered("seeded");
  const auto first = class_order(from, 100);
  CHECK(sorted(*first) == numbers_to_99());
  CHECK(first != numbers_to_99());
  CHECK(class_order(from, 100) == first);
  from.seed = 2;
  CHECK(class_order(from, 100) != first);
}

TEST_CASE("a listed class order is used unchanged, and a list that is no permutation is refused", "[curriculum]") {
  using list = std::vector<std::int64_t>;
  CHECK(class_order(ordered(list{2, 0, 1}), 3) == list{2, 0, 1});
  CHECK_THAT(first_finding(class_order(ordered(list{2, 0, 2}), 3)),
             ContainsSubstring("a.toml:3:5: class order names class 2 twice; expected each class 0..2"));
  CHECK_THAT(first_finding(class_order(ordered(list{2, 0, 3}), 3)), ContainsSubstring("names class 3; expected"));
  CHECK_THAT(first_finding(class_order(ordered(list{2, 0}), 3)),
             ContainsSubstring("lists 2 of 3 classes, not class 1"));
}
