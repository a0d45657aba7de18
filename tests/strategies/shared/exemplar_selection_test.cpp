// Selection of rows, differences between the forms of herding, and the content of a memory.
#include "strategies/shared/exemplar_memory.hpp"
#include "tests/support/method_driver.hpp"
#include <cmath>
#include <numbers>
using namespace mneme;
using namespace mneme::test;

namespace {

using numbers = std::vector<std::int64_t>;

at::Tensor at_angles(const std::vector<double>& degrees) {
  std::vector<float> values;
  for (const auto angle : degrees) {
    values.push_back(static_cast<float>(3.0 * std::cos(angle * std::numbers::pi / 180.0)));
    values.push_back(static_cast<float>(3.0 * std::sin(angle * std::numbers::pi / 180.0)));
  }
  return at::tensor(values).view({-1, 2});
}

} // namespace

TEST_CASE("the forms of herding select different rows", "[exemplars]") {
  const auto features = at_angles({0, 30, 40, 120});
  CHECK(choose_exemplars(features, 4, exemplar_choice::greedy) == numbers{2, 1, 3, 0});
  CHECK(choose_exemplars(features, 4, exemplar_choice::repeats) == numbers{2, 3, 0, 1});
  CHECK(choose_exemplars(features, 6, exemplar_choice::duplicates) == numbers{2, 2, 2, 3, 0, 1});
  CHECK(choose_exemplars(features, 4, exemplar_choice::rank) == numbers{2, 1, 0, 3});
  CHECK(choose_exemplars(features, 3, exemplar_choice::first) == numbers{0, 1, 2});
  for (const auto how : {exemplar_choice::greedy, exemplar_choice::repeats, exemplar_choice::rank})
    CHECK(choose_exemplars(features, 2, how).size() == 2); // early picks do not depend on the number
}

TEST_CASE("herding with repeats ends when no new row is selected", "[exemplars]") {
  const auto features = at_angles({0, 0.001}); // the mean lies between them, so they alternate
  CHECK(choose_exemplars(features, 2, exemplar_choice::repeats).size() == 2);
}

TEST_CASE("a memory is shared by its classes and shrinks to the first selected rows", "[exemplars]") {
  const auto source = striped_rows(40, 3, 4); // row r has label r mod 4
  const numbers first_task{0, 4, 8, 12, 1, 5, 9, 13}, second_task{2, 6, 10, 14};
  const auto features = [&](const numbers& rows) {
    std::vector<double> angles;
    for (const auto row : rows)
      angles.push_back(static_cast<double>(row));
    return at_angles(angles);
  };
  const memory_rules rules{.rows_max = 7, .choice = exemplar_choice::greedy};
  const auto first = update_exemplars(*source, {}, first_task, features(first_task), rules);
  REQUIRE(first.size() == 6); // 7 / 2 of each
  const auto second = update_exemplars(*source, first, second_task, features(second_task), rules);
  REQUIRE(second.size() == 6); // 7 / 3 of each
  CHECK(numbers(second.begin(), second.begin() + 4) == numbers{first[0], first[1], first[3], first[4]});
  CHECK(source->label(second[4]) == 2);
  const auto again = update_exemplars(*source, second, second_task, features(second_task), rules);
  CHECK(again == second); // a class that is selected again uses its own share
}
