#include "runtime/population/population.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using namespace std::chrono_literals;

namespace {

scenario of_clients(std::int64_t count) {
  scenario from;
  from.clients.count = count;
  return from;
}

} // namespace

TEST_CASE("all clients are enrolled in every task by default", "[population]") {
  const population everybody(of_clients(3));
  CHECK(everybody.size() == 3);
  CHECK(everybody.enrolled({7}) == 3);
  CHECK(everybody.member({2}, {7}) == membership::active);
}

TEST_CASE("a table enrolls blocks of clients by a letter per task", "[population]") {
  auto from = of_clients(7);
  from.enrolment = {.kind = enrolment_kind::table, .table = {"AAO", "XAA", "AXA"}};
  const population some(from);
  // floor(3 c / 7): clients 0 1 2 | 3 4 | 5 6
  CHECK(some.member({2}, {1}) == membership::active);
  CHECK(some.member({2}, {2}) == membership::left);
  CHECK(some.member({3}, {0}) == membership::not_yet);
  CHECK(some.member({4}, {2}) == membership::active);
  CHECK(some.member({5}, {1}) == membership::not_yet);
  CHECK(some.enrolled({0}) == 5);
  CHECK(some.enrolled({1}) == 5);
  CHECK(some.enrolled({2}) == 4);
}

TEST_CASE("the number of enrolled clients is that of active members, also with more groups than clients",
          "[population]") {
  for (const std::int64_t count : {1, 2, 3, 10, 29}) {
    auto from = of_clients(count);
    from.enrolment = {.kind = enrolment_kind::table, .table = {"A", "X", "A", "O", "A"}};
    const population some(from);
    std::int64_t active = 0;
    for (std::uint32_t c = 0; c < count; ++c)
      active += some.member({c}, {0}) == membership::active;
    CHECK(some.enrolled({0}) == active);
  }
}

TEST_CASE("a growing population adds clients in id order until all are enrolled", "[population]") {
  auto from = of_clients(35);
  from.enrolment = {.kind = enrolment_kind::growing, .initial = 10, .added_per_task = 10};
  const population growing(from);
  CHECK(growing.enrolled({0}) == 10);
  CHECK(growing.enrolled({2}) == 30);
  CHECK(growing.enrolled({3}) == 35);
  CHECK(growing.enrolled({100}) == 35);
  CHECK(growing.member({9}, {0}) == membership::active);
  CHECK(growing.member({10}, {0}) == membership::not_yet);
  CHECK(growing.member({10}, {1}) == membership::active);
}

TEST_CASE("a transfer takes its latency plus its bits divided by the bandwidth", "[population]") {
  auto from = of_clients(2);
  from.devices = {.uplink_mbit = std::vector<double>{8.0, 0.0}, .downlink_mbit = 16.0, .latency = 50ms};
  const population pair(from);
  CHECK(pair.devices().upload_time({.client = {0}, .bytes = 1'000'000}) == 1050ms);
  CHECK(pair.devices().download_time({.client = {0}, .bytes = 1'000'000}) == 550ms);
  CHECK(pair.devices().upload_time({.client = {1}, .bytes = 1'000'000}) == 50ms); // no bandwidth: instantaneous
  CHECK(pair.devices().upload_time({.client = {0}, .bytes = 0}) == 50ms);
}

TEST_CASE("durations are rounded up to 1 ns, and whole ones stay unchanged", "[population]") {
  auto from = of_clients(3);
  from.devices = {.rows_per_second = std::vector<double>{3.0, 2000.0, 1e-12}, .latency = 0ns};
  const population some(from);
  CHECK(some.devices().compute_time({0}, 1) == 333'333'334ns);
  CHECK(some.devices().compute_time({0}, 3) == 1s);
  for (std::int64_t rows = 0; rows < 1000; ++rows)
    REQUIRE(some.devices().compute_time({1}, rows) == rows * 500us);
  CHECK(some.devices().compute_time({2}, 1'000'000) == end_of_runs.time_since_epoch()); // 146 years, the limit
}

TEST_CASE("speeds are log-normal over clients, and each client keeps its speed", "[population]") {
  constexpr std::uint32_t clients = 100'000;
  auto from = of_clients(clients);
  from.devices.rows_per_second = log_normal{2000.0, 0.5};
  from.devices.uplink_mbit = from.devices.downlink_mbit = log_normal{10.0, 0.5};
  const population many(from);
  std::vector<double> logs;
  double sum = 0.0, squares = 0.0, with_uplink = 0.0;
  for (std::uint32_t c = 0; c < clients; ++c) {
    const double compute_s =
        static_cast<double>(many.devices().compute_time({c}, 2'000'000).count()) * 1e-9; // 1000 s at the median
    const double x = -std::log(compute_s / 1000.0);
    logs.push_back(x);
    sum += x;
    squares += x * x;
    with_uplink +=
        x *
        std::log(static_cast<double>((many.devices().upload_time({.client = {c}, .bytes = 1 << 20}) - 50ms).count()));
  }
  std::nth_element(logs.begin(), logs.begin() + clients / 2, logs.end());
  const double error = 0.5 / std::sqrt(double{clients});
  CHECK(logs[clients / 2] == Catch::Approx(0.0).margin(4 * 1.2533 * error)); // the median's standard error
  CHECK(sum / clients == Catch::Approx(0.0).margin(4 * error));
  CHECK(std::sqrt(squares / clients) == Catch::Approx(0.5).margin(4 * error / std::sqrt(2.0)));
  const double uplink_ns = std::log(8e3 * (1 << 20) / 10.0);
  CHECK((with_uplink - uplink_ns * sum) / clients == Catch::Approx(0.0).margin(4 * 0.25 / std::sqrt(double{clients})));
  CHECK(many.devices().compute_time({5}, 100) == population(from).devices().compute_time({5}, 100));
  CHECK(many.devices().upload_time({.client = {5}, .bytes = 100}) !=
        many.devices().download_time({.client = {5}, .bytes = 100}));
  from.seed = 2;
  CHECK(many.devices().compute_time({5}, 100) != population(from).devices().compute_time({5}, 100));
}

TEST_CASE("drop-outs have the given rate, by client and visit but not by task", "[population]") {
  auto from = of_clients(10'000);
  CHECK_FALSE(population(from).drops_out({1}, {0}, 0));
  from.devices.dropout = 0.05;
  const population some(from);
  int lost = 0, twice = 0;
  for (std::uint32_t c = 0; c < 10'000; ++c)
    for (std::uint32_t visit = 0; visit < 10; ++visit) {
      const bool drops = some.drops_out({c}, {0}, visit);
      lost += drops;
      REQUIRE(some.drops_out({c}, {3}, visit) == drops);
      twice += visit == 1 && drops && some.drops_out({c}, {0}, 0);
    }
  CHECK(lost == Catch::Approx(5000).margin(4 * std::sqrt(1e5 * 0.05 * 0.95)));
  CHECK(twice == Catch::Approx(25).margin(4 * std::sqrt(25.0))); // visits are independent
  from.devices.dropout = 1.0;
  CHECK(population(from).drops_out({0}, {0}, 0));
}

TEST_CASE("a drop-out happens at a random point of the first stage, by client and visit", "[population]") {
  const population some(of_clients(10'000));
  double sum = 0.0, squares = 0.0;
  for (std::uint32_t c = 0; c < 10'000; ++c) {
    const double point = some.dropout_point({c}, 3);
    REQUIRE(point >= 0.0);
    REQUIRE(point < 1.0);
    sum += point;
    squares += point * point;
  }
  CHECK(sum / 1e4 == Catch::Approx(0.5).margin(4 * std::sqrt(1.0 / 12.0 / 1e4)));
  CHECK(squares / 1e4 == Catch::Approx(1.0 / 3.0).margin(4 * std::sqrt(4.0 / 45.0 / 1e4)));
  CHECK(some.dropout_point({1}, 0) != some.dropout_point({1}, 1));
}
