// Capped Dirichlet split, as in the comparison of the STSA paper.
#include "runtime/data/partition.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 10, rows = 2000;

struct capped_split {
  std::vector<std::vector<std::int64_t>> parts{};             ///< rows of each client
  std::vector<std::map<std::int64_t, std::int64_t>> pieces{}; ///< numbers of rows of each client by class
  std::vector<std::int64_t> every{};                          ///< rows of the task
};

capped_split split_over(std::int64_t clients, double beta, std::int64_t seed) {
  scenario from;
  from.seed = seed;
  from.tasks.count = 1;
  from.clients.count = clients;
  from.partition.kind = partition_kind::dirichlet_capped;
  from.partition.beta = beta;
  auto tasks =
      std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(classes, rows, {1, 1, 1})).value());
  const auto split = make_partition(from, tasks).value();
  capped_split made{.every = tasks->tasks[0].train};
  for (std::uint32_t c = 0; c < clients; ++c) {
    made.parts.push_back(split->rows({c}, {0}));
    auto& pieces = made.pieces.emplace_back();
    for (const auto row : made.parts.back())
      ++pieces[row % classes];
  }
  return made;
}

} // namespace

TEST_CASE("capped shares are disjoint, contain every row, and respect the cap up to one piece", "[partition]") {
  for (const std::int64_t clients : {2, 5, 30})
    for (const double beta : {0.05, 0.5, 5.0})
      for (const std::int64_t seed : {1, 2}) {
        CAPTURE(clients, beta, seed);
        const auto made = split_over(clients, beta, seed);
        std::vector<std::int64_t> joined;
        for (std::size_t c = 0; c < made.parts.size(); ++c) {
          const auto& part = made.parts[c];
          joined.insert(joined.end(), part.begin(), part.end());
          REQUIRE_FALSE(part.empty());
          std::int64_t largest_piece = 0;
          for (const auto& [label, count] : made.pieces[c])
            largest_piece = std::max(largest_piece, count);
          CHECK(static_cast<double>(part.size()) <
                static_cast<double>(rows) / static_cast<double>(clients) + static_cast<double>(largest_piece));
        }
        std::sort(joined.begin(), joined.end());
        CHECK(joined == made.every);
      }
}

TEST_CASE("a very large beta gives all clients nearly equal shares of every class", "[partition]") {
  for (const std::int64_t seed : {1, 2, 3}) {
    const auto made = split_over(5, 1e6, seed);
    for (const auto& pieces : made.pieces) {
      REQUIRE(std::ssize(pieces) == classes);
      for (const auto& [label, count] : pieces)
        CHECK(std::abs(count - rows / classes / 5) <= 2);
    }
  }
}

TEST_CASE("a beta of 0, which means no skew in the official code, gives sizes that differ by at most one",
          "[partition]") {
  scenario from;
  from.tasks.count = 1;
  from.clients.count = 7;
  from.partition.kind = partition_kind::iid;
  const auto tasks =
      std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(classes, rows, {1, 1, 1})).value());
  const auto split = make_partition(from, tasks).value();
  std::vector<std::int64_t> sizes;
  for (std::uint32_t c = 0; c < 7; ++c)
    sizes.push_back(split->size({c}, {0}));
  CHECK(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == rows);
  CHECK(*std::max_element(sizes.begin(), sizes.end()) - *std::min_element(sizes.begin(), sizes.end()) <= 1);
}
