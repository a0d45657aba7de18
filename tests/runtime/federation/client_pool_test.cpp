#include "runtime/base/archive.hpp"
#include "runtime/federation/client_pool.hpp"
#include <catch2/catch_test_macros.hpp>
#include <numeric>
using namespace mneme;
using namespace std::chrono_literals;

namespace {

/// Clients with even ids hold one row of each task.
class rows_of_even final : public partition {
public:
  [[nodiscard]] std::int64_t size(client_id client, task_id) const override { return 1 - client.value % 2; }
  [[nodiscard]] std::vector<std::int64_t> rows(client_id, task_id) const override { return {}; }
};

federation_settings settings_of(const scenario& from) {
  federation_settings settings;
  settings.seed = 3;
  settings.clients = std::make_shared<const population>(from);
  settings.rows =
      std::make_shared<const client_rows>(std::make_shared<const task_stream>(), std::make_shared<const rows_of_even>(),
                                          settings.clients, row_visibility::current);
  settings.rounds = from.rounds;
  return settings;
}

scenario ten_clients(round_mode mode) {
  scenario from;
  from.clients.count = 10;
  from.rounds.mode = mode;
  from.rounds.cohort = 0;
  return from;
}

using ids = std::vector<client_id>;

} // namespace

TEST_CASE("a cohort is drawn from idle clients that have rows") {
  const auto settings = settings_of(ten_clients(round_mode::sync));
  client_pool pool(settings);
  pool.open_task({0}, {});
  pool.plan_task({});
  CHECK((pool.draw_cohort({0}) == ids{{0}, {2}, {4}, {6}, {8}}));
  CHECK((pool.begin_visit({4}) == 0));
  CHECK((pool.draw_cohort({0}) == ids{{0}, {2}, {6}, {8}}));
  pool.end_visit({4});
  CHECK((pool.begin_visit({4}) == 1));
  CHECK((pool.visit_of({4}) == 1));
  pool.plan_task({.clients_without_rows = true});
  CHECK((pool.draw_cohort({0}).size() == 9));
}

TEST_CASE("a plan may exclude clients that were not enrolled in the first task") {
  auto from = ten_clients(round_mode::sync);
  from.enrolment = {.kind = enrolment_kind::growing, .initial = 4, .added_per_task = 6};
  const auto settings = settings_of(from);
  client_pool pool(settings);
  pool.open_task({1}, {});
  pool.plan_task({});
  CHECK((pool.draw_cohort({0}) == ids{{0}, {2}, {4}, {6}, {8}}));
  pool.plan_task({.first_enrolled_only = true});
  CHECK((pool.draw_cohort({0}) == ids{{0}, {2}}));
}

TEST_CASE("idle clients are drawn without replacement, in whatever order they became idle") {
  const auto settings = settings_of(ten_clients(round_mode::async));
  client_pool first(settings), second(settings);
  for (auto* pool : {&first, &second}) {
    pool->open_task({0}, {});
    pool->plan_task({});
    for (const std::uint32_t c : {0, 2, 4})
      CHECK((pool->begin_visit({c}) == 0));
  }
  for (const std::uint32_t c : {0, 2, 4})
    first.end_visit({c});
  for (const std::uint32_t c : {4, 2, 0})
    second.end_visit({c});
  const auto drawn = first.draw_idle(3, 17);
  CHECK((drawn.size() == 3));
  CHECK((drawn == second.draw_idle(3, 17)));
  CHECK((first.draw_idle(10, 18).size() == 2)); // the remaining ones
  CHECK(first.draw_idle(10, 19).empty());
  CHECK(first.draw_idle(-1, 20).empty());
}

TEST_CASE("the pool tracks the work of a client that may leave until the client is idle") {
  auto from = ten_clients(round_mode::sync);
  const auto settled = settings_of(from);
  client_pool stays(settled);
  stays.assigned({0}, {5});
  CHECK_FALSE(stays.assignment_of({0}));
  from.enrolment.kind = enrolment_kind::random;
  const auto restless = settings_of(from);
  client_pool leaves(restless);
  leaves.assigned({0}, {5});
  CHECK((leaves.assignment_of({0}) == assignment_id{5}));
  leaves.end_visit({0});
  CHECK_FALSE(leaves.assignment_of({0}));
}

TEST_CASE("clients that have left never return") {
  auto from = ten_clients(round_mode::sync);
  from.enrolment = {.kind = enrolment_kind::random, .arrival_mean = 1s, .lifetime_mean = 1s, .absence_mean = 0s};
  from.devices.availability = device_availability::diurnal;
  from.devices.availability_period = 10s;
  const auto settings = settings_of(from);
  client_pool pool(settings);
  pool.open_task({0}, {});
  pool.plan_task({});
  CHECK(pool.clients_may_come());
  (void)pool.move_to(virtual_time{1000s});
  CHECK((pool.enrolled() == 0));
  CHECK(pool.next_change());
  CHECK_FALSE(pool.clients_may_come());
  pool.plan_task({.clients_without_rows = true});
  CHECK_FALSE(pool.clients_may_come());
}

TEST_CASE("a pool that was saved and loaded draws as before") {
  const auto settings = settings_of(ten_clients(round_mode::async));
  client_pool saved(settings), loaded(settings);
  saved.open_task({0}, {});
  saved.plan_task({.clients_without_rows = true});
  CHECK((saved.begin_visit({7}) == 0));
  saved.end_visit({7});
  CHECK((saved.draw_idle(4, 1).size() == 4));
  archive file;
  file(saved);
  auto bytes = std::make_shared<std::vector<std::byte>>();
  file.each_piece([&](std::span<const std::byte> piece) { bytes->insert(bytes->end(), piece.begin(), piece.end()); });
  archive back(bytes, 0, bytes->size());
  back(loaded);
  CHECK((loaded.visit_of({7}) == 0));
  CHECK((loaded.draw_idle(3, 2) == saved.draw_idle(3, 2)));
}
