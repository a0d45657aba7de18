// STSA-E's split of a client's rows into dummies, compared with the draws of its key.
#include "strategies/stsa/dummy_clients.hpp"
#include "tests/support/method_driver.hpp"
#include <algorithm>
#include <map>
#include <numeric>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int32_t classes = 3;
const rng_key dealing{.seed = 4, .purpose = first_method_purpose, .client = {2}};
using parts_of_rows = std::vector<std::int32_t>;

parts_of_rows dealt(std::int64_t rows, std::int64_t parts, dummy_split split, const rng_key& by = dealing) {
  std::vector<std::int64_t> every(static_cast<std::size_t>(rows));
  std::iota(every.begin(), every.end(), 0);
  return *dummy_of_rows(view_of(striped_rows(rows, 2, classes), every), parts, split, by);
}

std::vector<std::int64_t> sizes(const parts_of_rows& dealt_to, std::int32_t parts) {
  std::vector<std::int64_t> counts;
  for (std::int32_t part = 0; part < parts; ++part)
    counts.push_back(std::count(dealt_to.begin(), dealt_to.end(), part));
  return counts;
}

} // namespace

TEST_CASE("a random split cuts the shuffled rows into equal chunks, and the last has the rest", "[stsa]") {
  const auto found = dealt(23, 5, dummy_split::random);
  CHECK(sizes(found, 5) == std::vector<std::int64_t>{4, 4, 4, 4, 7});
  std::vector<std::int64_t> order(23);
  std::iota(order.begin(), order.end(), 0);
  rng_stream(dealing).shuffle(std::span(order));
  REQUIRE_FALSE(std::is_sorted(order.begin(), order.end()));
  parts_of_rows expected(23);
  for (std::size_t i = 0; i < 23; ++i)
    expected[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(std::min<std::size_t>(i / 4, 4));
  CHECK(found == expected);
  auto other = dealing;
  other.visit = 1;
  CHECK(dealt(23, 5, dummy_split::random, other) != found);
}

TEST_CASE("if there are fewer rows than dummies, the last dummy has all", "[stsa]") {
  CHECK(dealt(3, 5, dummy_split::random) == parts_of_rows{4, 4, 4});
  CHECK(dealt(5, 5, dummy_split::random) != parts_of_rows(5, 4)); // one row each
  CHECK(sizes(dealt(5, 5, dummy_split::random), 5) == std::vector<std::int64_t>(5, 1));
}

TEST_CASE("a stratified split deals every class in turn", "[stsa]") {
  const auto found = dealt(31, 4, dummy_split::stratified);
  const auto all = sizes(found, 4);
  CHECK(*std::max_element(all.begin(), all.end()) - *std::min_element(all.begin(), all.end()) <= 1);
  for (std::int32_t label = 0; label < classes; ++label) {
    parts_of_rows own;
    for (std::size_t row = 0; row < found.size(); ++row)
      if (static_cast<std::int32_t>(row) % classes == label)
        own.push_back(found[row]);
    const auto counts = sizes(own, 4);
    CHECK(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()) <= 1);
  }
}
