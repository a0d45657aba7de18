// Rows that clients keep for tests, and counts of rows by class.
#include "runtime/data/client_classes.hpp"
#include "runtime/data/held_out_partition.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Two tasks of two classes with 10 rows each; balanced over 3 clients: 7, 7 and 6 rows of each task.
struct small_split {
  scenario from{};
  std::shared_ptr<const task_stream> tasks{};
  std::shared_ptr<const partition> all{};
  small_split() {
    from.tasks.count = 2;
    from.clients.count = 3;
    from.partition.kind = partition_kind::balanced;
    tasks = std::make_shared<const task_stream>(make_task_stream(from, hand_made_data(4, 40, {1, 1, 1})).value());
    all = make_partition(from, tasks).value();
  }
};

} // namespace

TEST_CASE("a client trains on the rows that it does not hold out", "[partition]") {
  const small_split split;
  const held_out_partition kept(split.all, 0.3, 5);
  for (std::uint32_t c = 0; c < 3; ++c)
    for (std::uint32_t t = 0; t < 2; ++t) {
      const auto all = split.all->rows({c}, {t});
      const auto trained = kept.rows({c}, {t}), tested = kept.test_rows({c}, {t});
      CHECK(std::ssize(tested) == (all.size() == 7 ? 2 : 1)); // 0.3 * 7 = 2.1, 0.3 * 6 = 1.8
      CHECK(kept.size({c}, {t}) == std::ssize(trained));
      CHECK(std::is_sorted(trained.begin(), trained.end()));
      std::vector<std::int64_t> both;
      std::merge(trained.begin(), trained.end(), tested.begin(), tested.end(), std::back_inserter(both));
      CHECK(both == all);
    }
}

TEST_CASE("held-out rows depend on the seed, the client and the task", "[partition]") {
  const small_split split;
  const auto positions = [&](double share, std::uint64_t seed, std::uint32_t client, std::uint32_t task) {
    const held_out_partition kept(split.all, share, seed);
    const auto all = split.all->rows({client}, {task});
    std::vector<std::int64_t> at;
    for (const auto row : kept.test_rows({client}, {task}))
      at.push_back(std::find(all.begin(), all.end(), row) - all.begin());
    return at;
  };
  CHECK(positions(0.5, 5, 0, 0) == positions(0.5, 5, 0, 0));
  std::set<std::vector<std::int64_t>> drawn;
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (std::uint32_t client = 0; client < 2; ++client)
      for (std::uint32_t task = 0; task < 2; ++task)
        drawn.insert(positions(0.5, seed, client, task));
  CHECK(drawn.size() > 8); // of 16 draws of 3 from 6 or 7 rows
}

TEST_CASE("shares of whole numbers are exact", "[partition]") {
  const small_split split;
  std::int64_t held = 0;
  for (std::uint32_t c = 0; c < 3; ++c)
    held += std::ssize(held_out_partition(split.all, 1.0 / 7.0, 5).test_rows({c}, {0}));
  CHECK(held == 2); // 1 of 7, 1 of 7, and 0 of 6
}

TEST_CASE("counts of rows by client and class add up to the rows of each class", "[partition]") {
  const small_split split;
  const auto counts = rows_by_client_and_class(*split.all, *split.tasks, 3);
  REQUIRE(counts.size() == 3);
  for (std::size_t label = 0; label < 4; ++label) {
    std::int64_t rows = 0;
    for (const auto& client : counts) {
      CHECK((client.at(label) == 3 || client.at(label) == 4)); // 10 rows for 3 clients
      rows += client[label];
    }
    CHECK(rows == 10);
  }
  CHECK(rows_by_class(*split.all, *split.tasks, {1}, {1}) == std::vector{counts[1][2], counts[1][3]});
}
