#include "runtime/data/partition.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <numeric>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using numbers = std::vector<std::int64_t>;

namespace {

scenario split_by(partition_kind kind, std::int64_t clients, std::int64_t tasks = 1) {
  scenario from;
  from.tasks.count = tasks;
  from.clients.count = clients;
  from.partition.kind = kind;
  from.key_places["partition.beta"] = "a.toml:7:1";
  return from;
}

std::shared_ptr<const task_stream> curriculum_of(const scenario& from, raw_data data) {
  return std::make_shared<const task_stream>(make_task_stream(from, std::move(data)).value());
}
/// `rows` rows with labels 0 to `classes` - 1 in turn.
std::shared_ptr<const task_stream> curriculum_of(const scenario& from, std::int64_t classes, std::int64_t rows) {
  return curriculum_of(from, hand_made_data(classes, rows, {1, 1, 1}));
}

/// Rows of every client in a task.
std::vector<numbers> all_rows(const partition& split, const scenario& from, task_id task) {
  std::vector<numbers> rows;
  for (std::uint32_t c = 0; c < from.clients.count; ++c) {
    rows.push_back(split.rows({c}, task));
    REQUIRE(split.size({c}, task) == std::ssize(rows.back()));
    REQUIRE(std::is_sorted(rows.back().begin(), rows.back().end()));
  }
  return rows;
}

numbers joined(const std::vector<numbers>& parts) {
  numbers rows;
  for (const auto& part : parts)
    rows.insert(rows.end(), part.begin(), part.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Smallest and largest number of rows that satisfy `counts`.
template <class Counts>
std::pair<std::int64_t, std::int64_t> extremes(const std::vector<numbers>& parts, Counts counts) {
  std::vector<std::int64_t> sizes;
  for (const auto& part : parts)
    sizes.push_back(std::count_if(part.begin(), part.end(), counts));
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  return {*most, *least};
}
constexpr auto any_row = [](std::int64_t) { return true; };

/// Mean and standard error of a statistic over the seeds 1 to `seeds`.
template <class Statistic>
std::pair<double, double> over_seeds(int seeds, Statistic order) {
  double sum = 0.0, squares = 0.0;
  for (int seed = 1; seed <= seeds; ++seed) {
    const double x = order(seed);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / seeds;
  return {mean, std::sqrt((squares / seeds - mean * mean) / seeds)};
}

} // namespace

TEST_CASE("a partition gives every row of a task to one client, for any kind, seed and sizes", "[partition]") {
  const auto kind = GENERATE(partition_kind::iid, partition_kind::dirichlet, partition_kind::dirichlet_capped,
                             partition_kind::balanced, partition_kind::shards);
  const std::int64_t clients = GENERATE(1, 3, 7);
  const std::int64_t seed = GENERATE(1, 2, 3);
  auto from = split_by(kind, clients, 3);
  from.seed = seed;
  const auto tasks = curriculum_of(from, 6, 203);
  const auto split = make_partition(from, tasks);
  REQUIRE(split);
  for (std::uint32_t t = 0; t < 3; ++t)
    CHECK(joined(all_rows(**split, from, {t})) == tasks->tasks[t].train);
}

TEST_CASE("iid sizes differ by at most one, and every class is spread over clients", "[partition]") {
  auto from = split_by(partition_kind::iid, 7);
  const auto split = make_partition(from, curriculum_of(from, 2, 1000)).value();
  const auto parts = all_rows(*split, from, {0});
  CHECK(extremes(parts, any_row) == std::pair<std::int64_t, std::int64_t>{143, 142});
  const auto [most, least] = extremes(parts, [](std::int64_t row) { return row % 2 == 0; });
  CHECK(most > least); // rows are not dealt by class: hypergeometric, deviation 5.5
  CHECK(most - least < 40);
}

TEST_CASE("with more clients than rows, different clients hold rows in different tasks", "[partition]") {
  const auto kind = GENERATE(partition_kind::iid, partition_kind::balanced);
  auto from = split_by(kind, 1000, 2);
  const auto split = make_partition(from, curriculum_of(from, 2, 200)).value();
  int both = 0; // each task gives rows to 10 of 100 clients; 10 are expected in both
  for (std::uint32_t c = 0; c < 1000; ++c)
    both += split->size({c}, {0}) == 1 && split->size({c}, {1}) == 1;
  CHECK(both < 30);
}

TEST_CASE("a balanced split differs by at most one per class and in total", "[partition]") {
  auto from = split_by(partition_kind::balanced, 4);
  auto data = hand_made_data(3, 1, {1, 1, 1});
  data.train = hand_made_split({0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2}, {}, {1, 1, 1}); // 5, 7 and 2 rows
  const auto tasks = curriculum_of(from, data);
  const auto parts = all_rows(*make_partition(from, tasks).value(), from, {0});
  CHECK(extremes(parts, any_row) == std::pair<std::int64_t, std::int64_t>{4, 3});
  const auto of_class = [&](int label) {
    return extremes(parts, [&, label](std::int64_t row) { return tasks->train->label(row) == label; });
  };
  CHECK(of_class(0) == std::pair<std::int64_t, std::int64_t>{2, 1});
  CHECK(of_class(1) == std::pair<std::int64_t, std::int64_t>{2, 1});
  CHECK(of_class(2) == std::pair<std::int64_t, std::int64_t>{1, 0});
}

TEST_CASE("shards give each client few classes and equal sizes", "[partition]") {
  auto from = split_by(partition_kind::shards, 50);
  const auto tasks = curriculum_of(from, 10, 1000); // 100 shards of 10 rows, one class each
  const auto parts = all_rows(*make_partition(from, tasks).value(), from, {0});
  CHECK(extremes(parts, any_row) == std::pair<std::int64_t, std::int64_t>{20, 20});
  int mixed = 0;
  for (const auto& part : parts) {
    std::vector<std::int64_t> classes;
    for (const auto row : part)
      classes.push_back(row % 10);
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    REQUIRE(classes.size() <= 2);
    mixed += classes.size() == 2;
  }
  CHECK(mixed > 35); // two shards have the same class with probability 9 / 99
}

TEST_CASE("a client's share of a class has the second moment of the symmetric Dirichlet distribution", "[partition]") {
  const double beta = GENERATE(0.1, 0.5, 2.0);
  auto from = split_by(partition_kind::dirichlet, 5);
  from.partition.beta = beta;
  const auto tasks = curriculum_of(from, 1, 5000);
  const auto [mean, error] = over_seeds(400, [&](int seed) {
    from.seed = seed;
    const auto split = make_partition(from, tasks).value();
    double sum = 0.0;
    for (std::uint32_t c = 0; c < 5; ++c) {
      const double share = static_cast<double>(split->size({c}, {0})) / 5000;
      sum += share * share;
    }
    return sum;
  });
  CHECK(mean == Catch::Approx((beta + 1) / (5 * beta + 1)).margin(4 * error));
}

TEST_CASE("Dirichlet shares do not depend on the index of the client", "[partition]") {
  auto from = split_by(partition_kind::dirichlet, 4);
  from.partition.beta = 0.1;
  const auto tasks = curriculum_of(from, 1, 1000);
  for (const std::uint32_t client : {0U, 3U}) {
    const auto [mean, error] = over_seeds(400, [&](int seed) {
      from.seed = seed;
      return static_cast<double>(make_partition(from, tasks).value()->size({client}, {0}));
    });
    CHECK(mean == Catch::Approx(250).margin(4 * error));
  }
}

TEST_CASE("a large beta gives every client an equal share of every class", "[partition]") {
  for (const auto kind : {partition_kind::dirichlet, partition_kind::dirichlet_capped}) {
    auto from = split_by(kind, 8);
    from.partition.beta = 1e6;
    const auto split = make_partition(from, curriculum_of(from, 4, 1600)).value();
    const auto rows = all_rows(*split, from, {0});
    numbers every(1600);
    std::iota(every.begin(), every.end(), 0);
    CHECK(joined(rows) == every); // each row once
    for (std::int64_t label = 0; label < 4; ++label) {
      const auto [most, least] = extremes(rows, [label](std::int64_t row) { return row % 4 == label; });
      CHECK(least >= 48); // of 50
      CHECK(most <= 52);
    }
  }
}

TEST_CASE("a tiny beta gives whole classes to single clients and loses no row", "[partition]") {
  auto from = split_by(partition_kind::dirichlet, 10);
  from.partition.beta = 1e-4;
  const auto tasks = curriculum_of(from, 10, 1000);
  const auto parts = all_rows(*make_partition(from, tasks).value(), from, {0});
  CHECK(joined(parts) == tasks->tasks[0].train);
  for (const auto& part : parts)
    CHECK(part.size() % 100 == 0);
}

// Reference: 20,000 draws of the published partition function (K = 5, ten classes of 500 rows).
TEST_CASE("the capped Dirichlet split has the statistics of the published code", "[partition]") {
  struct published {
    double beta, largest, smallest, clients_per_class;
  };
  const auto known =
      GENERATE(published{0.5, 1224, 699, 4.36}, published{0.1, 1323, 540, 2.92}, published{0.05, 1364, 498, 2.36});
  auto from = split_by(partition_kind::dirichlet_capped, 5);
  from.partition.beta = known.beta;
  const auto tasks = curriculum_of(from, 10, 5000);
  constexpr int seeds = 250;
  double smallest = 0.0, present = 0.0;
  const auto [largest, error] = over_seeds(seeds, [&](int seed) {
    from.seed = seed;
    const auto parts = all_rows(*make_partition(from, tasks).value(), from, {0});
    const auto [most, least] = extremes(parts, any_row);
    smallest += static_cast<double>(least) / seeds;
    for (int c = 0; c < 10; ++c)
      present +=
          static_cast<double>(std::count_if(parts.begin(), parts.end(),
                                            [&](const numbers& part) {
                                              return std::any_of(part.begin(), part.end(),
                                                                 [&](std::int64_t row) { return row % 10 == c; });
                                            })) /
          (10.0 * seeds);
    return static_cast<double>(most);
  });
  CHECK(largest == Catch::Approx(known.largest).margin(4 * error));
  CHECK(smallest == Catch::Approx(known.smallest).margin(4 * 209 / std::sqrt(double{seeds})));
  CHECK(present == Catch::Approx(known.clients_per_class).margin(0.06));
}

TEST_CASE("the capped split gives every client a row, or reports that it cannot", "[partition]") {
  auto from = split_by(partition_kind::dirichlet_capped, 20);
  from.partition.beta = 0.05;
  const auto parts = all_rows(*make_partition(from, curriculum_of(from, 10, 2000)).value(), from, {0});
  CHECK(std::none_of(parts.begin(), parts.end(), [](const numbers& part) { return part.empty(); }));
  const auto stuck = first_finding(make_partition(from, curriculum_of(from, 1, 2000)));
  CHECK_THAT(stuck,
             ContainsSubstring("a.toml:7:1: dirichlet-capped left a client without rows in each of 10000 redraws"));
  CHECK_THAT(stuck, ContainsSubstring("(beta = 0.05, clients = 20, rows = 2000 in task 1)"));
  CHECK_THAT(first_finding(make_partition(from, curriculum_of(from, 10, 19))),
             ContainsSubstring("fewer rows than clients (beta = 0.05, clients = 20, rows = 19 in task 1)"));
}

TEST_CASE("a per-run seed repeats the split in every task, a per-task seed does not", "[partition]") {
  const auto kind =
      GENERATE(partition_kind::iid, partition_kind::dirichlet, partition_kind::dirichlet_capped,
               partition_kind::balanced, partition_kind::shards, partition_kind::class_share, partition_kind::sampled);
  auto from = split_by(kind, 4, 2);
  from.partition.rows_per_client = 20;
  const auto tasks = curriculum_of(from, 8, 400); // class of a row: row mod 8, so task 2 is task 1 shifted by 4
  const auto moved = [&](bool per_run) {
    from.partition.per_run_seed = per_run;
    const auto split = make_partition(from, tasks).value();
    auto first = all_rows(*split, from, {0});
    for (auto& part : first)
      for (auto& row : part)
        row += 4;
    return first == all_rows(*split, from, {1});
  };
  CHECK(moved(true));
  CHECK_FALSE(moved(false));
}

TEST_CASE("a split depends on the seed only", "[partition]") {
  const auto kind = GENERATE(partition_kind::iid, partition_kind::dirichlet, partition_kind::shards,
                             partition_kind::class_share, partition_kind::sampled);
  auto from = split_by(kind, 5);
  const auto tasks = curriculum_of(from, 6, 600);
  const auto once = all_rows(*make_partition(from, tasks).value(), from, {0});
  CHECK(all_rows(*make_partition(from, tasks).value(), from, {0}) == once);
  from.seed = 2;
  CHECK(all_rows(*make_partition(from, tasks).value(), from, {0}) != once);
}

TEST_CASE("class-share gives a client all rows of its share of classes, rounded down", "[partition]") {
  struct sizes {
    double share;
    std::int64_t classes, held;
  };
  const auto [share, classes, held] =
      GENERATE(sizes{0.6, 10, 6}, sizes{0.6, 5, 3}, sizes{0.6, 20, 12}, sizes{0.7, 10, 7}, sizes{0.55, 10, 5},
               sizes{0.1, 3, 1}, sizes{1.0, 4, 4});
  auto from = split_by(partition_kind::class_share, 300);
  from.partition.class_share = share;
  const auto tasks = curriculum_of(from, classes, classes * 5);
  std::vector<int> clients_of(static_cast<std::size_t>(classes));
  for (const auto& rows : all_rows(*make_partition(from, tasks).value(), from, {0})) {
    REQUIRE(std::ssize(rows) == held * 5);
    for (const auto row : rows)
      ++clients_of[static_cast<std::size_t>(row % classes)];
  }
  const double p = static_cast<double>(held) / static_cast<double>(classes);
  for (const int clients : clients_of) {
    REQUIRE(clients % 5 == 0); // all rows of a class, or none
    CHECK(clients / 5 == Catch::Approx(300 * p).margin(4 * std::sqrt(300 * p * (1 - p)) + 1e-9));
  }
}

TEST_CASE("class-share draws new classes in every task, from that task alone", "[partition]") {
  auto from = split_by(partition_kind::class_share, 40, 3);
  from.partition.class_share = 0.6;
  const auto tasks = curriculum_of(from, 30, 90); // three tasks of ten classes, three rows of each class
  const auto split = make_partition(from, tasks).value();
  for (std::uint32_t t = 0; t < 3; ++t)
    for (const auto& rows : all_rows(*split, from, {t})) {
      std::map<std::int64_t, int> rows_of;
      for (const auto row : rows)
        ++rows_of[row % 30];
      CHECK(rows_of.size() == 6);
      for (const auto& [label, count] : rows_of) {
        CHECK(label / 10 == t);
        CHECK(count == 3);
      }
    }
  CHECK(all_rows(*split, from, {0})[0].size() == all_rows(*split, from, {1})[0].size());
}

TEST_CASE("sampled rows of a client differ, and all rows are equally likely", "[partition]") {
  auto from = split_by(partition_kind::sampled, 2000, 2);
  from.partition.rows_per_client = 30;
  const auto split = make_partition(from, curriculum_of(from, 4, 200)).value();
  std::vector<int> counts(200);
  for (auto& rows : all_rows(*split, from, {1})) {
    REQUIRE(rows.size() == 30);
    REQUIRE(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
    for (const auto row : rows)
      ++counts[static_cast<std::size_t>(row)];
  }
  double chi_square = 0.0; // 100 rows of task 2, 600 draws each, without replacement: variance 600 * 0.7
  for (std::size_t row = 0; row < 200; ++row) {
    CHECK((counts[row] > 0) == (row % 4 >= 2));
    chi_square += row % 4 >= 2 ? (counts[row] - 600.0) * (counts[row] - 600.0) / (600 * 0.7) : 0.0;
  }
  CHECK(chi_square == Catch::Approx(100).margin(4 * std::sqrt(2.0 * 100)));
}

TEST_CASE("sampled rows do not depend on the order of calls", "[partition]") {
  auto from = split_by(partition_kind::sampled, 100'000'000, 2);
  const auto split = make_partition(from, curriculum_of(from, 4, 1000)).value();
  const auto last = split->rows({99'999'999}, {1}), first = split->rows({0}, {0});
  CHECK(split->rows({0}, {0}) == first);
  CHECK(split->rows({99'999'999}, {1}) == last);
  CHECK(last.size() == 50);
}

TEST_CASE("sampled rows repeat only if a task has fewer rows than requested", "[partition]") {
  auto from = split_by(partition_kind::sampled, 3);
  from.partition.rows_per_client = 20;
  const auto exact = curriculum_of(from, 2, 20);
  CHECK(make_partition(from, exact).value()->rows({1}, {0}) == exact->tasks[0].train);
  const auto split = make_partition(from, curriculum_of(from, 2, 5)).value();
  for (const auto& rows : all_rows(*split, from, {0})) {
    CHECK(rows.size() == 20);
    CHECK((rows.front() >= 0 && rows.back() < 5));
  }
}

TEST_CASE("each permuted task is split separately over the rows of its transform", "[partition]") {
  auto from = split_by(partition_kind::dirichlet, 3, 2);
  from.tasks.kind = task_kind::domain_incremental;
  from.tasks.transform = task_transform::permute;
  const auto tasks = curriculum_of(from, 4, 100);
  const auto split = make_partition(from, tasks).value();
  CHECK(joined(all_rows(*split, from, {1})) == tasks->tasks[1].train);
  CHECK(tasks->tasks[1].train.front() == 100);
}

TEST_CASE("rows of a task are split over the enrolled clients without a loss") {
  using enum partition_kind;
  for (const auto kind : {iid, balanced, dirichlet, dirichlet_capped, shards}) {
    auto from = split_by(kind, 6, 2);
    from.partition.beta = 5.0;
    const auto tasks = curriculum_of(from, 4, 400);
    const enrolled_clients members = [](task_id task) {
      return task.value == 0 ? std::vector<std::uint32_t>{1, 4} : std::vector<std::uint32_t>{0, 2, 3, 5};
    };
    const auto everybody = make_partition(from, tasks, {}, members).value();
    CHECK(everybody->size({0}, {0}) > 0); // "all" asks nobody
    from.partition.over_enrolled = true;
    const auto split = make_partition(from, tasks, {}, members).value();
    for (std::uint32_t t = 0; t < 2; ++t) {
      const auto parts = all_rows(*split, from, {t});
      CHECK(joined(parts) == tasks->tasks[t].train);
      const auto there = members({t});
      for (std::uint32_t c = 0; c < 6; ++c)
        CHECK(parts[c].empty() == (std::find(there.begin(), there.end(), c) == there.end()));
    }
    const auto nobody = make_partition(from, tasks, {}, [](task_id) { return std::vector<std::uint32_t>{}; });
    CHECK_THAT(first_finding(nobody), ContainsSubstring("no client is enrolled in task 1"));
  }
}
