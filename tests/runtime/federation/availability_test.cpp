#include "runtime/federation/availability.hpp"
#include "runtime/population/availability_trace.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
using namespace mneme;
using namespace std::chrono_literals;
using kind = availability_change::kind;

namespace {

virtual_time when(virtual_duration since) { return virtual_time(since); }

scenario of_clients(std::int64_t count) {
  scenario from;
  from.clients.count = count;
  return from;
}

availability availability_of(const scenario& from, std::shared_ptr<const availability_trace> trace = nullptr) {
  return availability(std::make_shared<const population>(from, device_inputs{.availability = std::move(trace)}));
}

scenario coming_and_going(std::int64_t count, virtual_duration absence) {
  auto from = of_clients(count);
  from.enrolment = {
      .kind = enrolment_kind::random, .arrival_mean = 100s, .lifetime_mean = 50s, .absence_mean = absence};
  return from;
}

/// Mean and standard deviation of durations in seconds.
struct moments {
  double mean = 0.0, deviation = 0.0;
};
moments moments_of(const std::vector<double>& values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values)
    sum += value, squares += value * value;
  const auto n = static_cast<double>(values.size());
  return {.mean = sum / n, .deviation = std::sqrt(squares / n - sum * sum / n / n)};
}

void check_exponential(const std::vector<double>& values, double mean) {
  const auto found = moments_of(values);
  const auto error = mean / std::sqrt(static_cast<double>(values.size()));
  CHECK(found.mean == Catch::Approx(mean).margin(4 * error));
  CHECK(found.deviation == Catch::Approx(mean).margin(4 * std::sqrt(2.0) * error)); // the kurtosis is 9
  const auto short_ones = std::count_if(values.begin(), values.end(), [&](double x) { return x < mean * 0.1; });
  const double share = 1.0 - std::exp(-0.1), n = static_cast<double>(values.size());
  CHECK(static_cast<double>(short_ones) / n == Catch::Approx(share).margin(4 * std::sqrt(share * (1 - share) / n)));
}

} // namespace

// Dong et al. 2023: before a task, a tenth of the clients, N - floor(0.9 N), keep the old one; new clients never do.
TEST_CASE("tasks.keep_task_share of the enrolled clients keep their task, drawn again for each task") {
  auto from = of_clients(120);
  from.enrolment = {.kind = enrolment_kind::growing, .initial = 30, .added_per_task = 10};
  from.tasks.keep_task_share = 0.1;
  auto who = availability_of(from);
  std::vector<std::uint32_t> stayed_before;
  for (std::uint32_t t = 0; t < 10; ++t) {
    who.open_task({t}, {});
    const auto population = 30 + 10 * t, before = population - 10;
    CHECK(who.enrolled() == population);
    std::vector<std::uint32_t> stayed;
    for (std::uint32_t c = 0; c < population; ++c)
      if (who.task_of({c}) != task_id{t})
        stayed.push_back(c);
    CHECK(stayed.size() == (t == 0 ? 0 : before / 10)); // 3, 4, ... 11
    CHECK((stayed.empty() || stayed.back() < before));
    CHECK((t == 0 || stayed != stayed_before));
    stayed_before = stayed;
  }
}

TEST_CASE("clients in transition or not yet enrolled are not among those that keep their task") {
  auto from = coming_and_going(200, 0s);
  from.tasks.transition = task_transition::staggered;
  from.tasks.transition_spread = 10s;
  from.tasks.keep_task_share = 0.5;
  auto who = availability_of(from);
  who.open_task({0}, {});
  (void)who.move_to(when(60s));
  std::int64_t enrolled = 0, stayed = 0;
  for (std::uint32_t c = 0; c < 200; ++c)
    enrolled += who.member({c}) == membership::active;
  REQUIRE(enrolled > 20);
  who.open_task({1}, when(60s));
  (void)who.move_to(when(70s));
  for (std::uint32_t c = 0; c < 200; ++c)
    stayed += who.task_of({c}) == task_id{0};
  CHECK(stayed == enrolled - enrolled / 2);
}

TEST_CASE("without random changes no event is scheduled, and the task determines enrollment") {
  auto from = of_clients(30);
  from.enrolment = {.kind = enrolment_kind::growing, .initial = 10, .added_per_task = 10};
  auto who = availability_of(from);
  who.open_task({0}, when(0s));
  CHECK_FALSE(who.next_change());
  CHECK(who.is_available({9}));
  CHECK_FALSE(who.is_available({10}));
  CHECK(who.enrolled() == 10);
  who.open_task({1}, when(5s));
  CHECK(who.is_available({10}));
  CHECK(who.task_of({3}) == task_id{1});
  CHECK(who.enrolled() == 20);
  CHECK(who.move_to(when(100s)).empty());
}

TEST_CASE("clients arrive, stay and are absent for exponential times") {
  constexpr std::uint32_t clients = 20'000;
  auto who = availability_of(coming_and_going(clients, 20s));
  CHECK(who.enrolled() == 0);
  CHECK(who.member({1}) == membership::not_yet);
  CHECK(who.endless());
  std::vector<double> arrivals, stays, absences;
  std::vector<virtual_time> since(clients);
  std::vector<int> joins(clients);
  virtual_time before{};
  for (const auto& change : who.move_to(when(4000s))) {
    REQUIRE(change.at >= before);
    before = change.at;
    const auto c = change.client.value;
    const double waited = in_seconds(virtual_time(change.at - since[c]));
    if (change.change_kind == kind::joined)
      (joins[c]++ == 0 ? arrivals : absences).push_back(waited);
    else
      stays.push_back(waited);
    since[c] = change.at;
  }
  REQUIRE(arrivals.size() == clients);
  check_exponential(arrivals, 100.0);
  // The last stay does not end before the trace does, so it is not counted. It is longer than others, which causes a
  // bias of 1 %.
  CHECK(moments_of(stays).mean == Catch::Approx(50.0).margin(1.0));
  CHECK(moments_of(absences).mean == Catch::Approx(20.0).margin(0.3));
  CHECK(static_cast<double>(who.enrolled()) == Catch::Approx(clients * 50.0 / 70.0).margin(4 * 65.0)); // sqrt(npq) = 64
}

TEST_CASE("exponential stays are final if absent clients never return") {
  constexpr std::uint32_t clients = 20'000;
  const population people(coming_and_going(clients, 0s));
  std::vector<double> stays;
  for (std::uint32_t c = 0; c < clients; ++c)
    stays.push_back(in_seconds(virtual_time(people.enrolled_time({c}, 0))));
  check_exponential(stays, 50.0);
  auto who = availability_of(coming_and_going(clients, 0s));
  CHECK_FALSE(who.endless());
  CHECK(who.move_to(when(1'000'000s)).size() == 2 * clients);
  CHECK_FALSE(who.next_change());
  CHECK(who.enrolled() == 0);
  CHECK(who.member({7}) == membership::left);
}

TEST_CASE("availability times of a client do not depend on the number of clients or the time of queries") {
  auto few = availability_of(coming_and_going(10, 20s)), many = availability_of(coming_and_going(1000, 20s));
  std::vector<virtual_time> one_query, many_queries;
  for (const auto& change : few.move_to(when(500s)))
    if (change.client.value == 7)
      one_query.push_back(change.at);
  while (many.next_change() <= when(500s))
    for (const auto& change : many.move_to(*many.next_change()))
      if (change.client.value == 7)
        many_queries.push_back(change.at);
  CHECK(one_query.size() > 3);
  CHECK((one_query == many_queries));
}

TEST_CASE("with a diurnal pattern each client is online for half of every period, with its own phase") {
  constexpr std::uint32_t clients = 2000;
  auto from = of_clients(clients);
  from.devices.availability = device_availability::diurnal;
  from.devices.availability_period = 1000s;
  auto who = availability_of(from);
  std::map<std::uint32_t, std::vector<availability_change>> changes;
  std::int64_t first = 0;
  for (std::uint32_t c = 0; c < clients; ++c)
    first += who.is_available({c});
  CHECK(std::abs(first - clients / 2) < 4 * 23); // sqrt(2000) / 2
  for (const auto& change : who.move_to(when(10'000s)))
    changes[change.client.value].push_back(change);
  std::vector<double> mornings;
  for (const auto& [client, batches] : changes) {
    REQUIRE(batches.size() == 20);
    for (std::size_t i = 1; i < batches.size(); ++i) {
      REQUIRE(batches[i].at - batches[i - 1].at == 500s);
      REQUIRE(batches[i].change_kind != batches[i - 1].change_kind);
    }
    for (const auto& change : {batches[0], batches[1]})
      if (change.change_kind == kind::reachable)
        mornings.push_back(in_seconds(change.at));
  }
  REQUIRE(changes.size() == clients);
  const auto spread = moments_of(mornings);
  CHECK(spread.mean == Catch::Approx(500.0).margin(4 * 1000.0 / std::sqrt(12.0 * clients)));
  CHECK(spread.deviation == Catch::Approx(1000.0 / std::sqrt(12.0)).margin(15.0));
}

TEST_CASE("a trace file determines when clients are online") {
  auto from = of_clients(3);
  from.devices.availability = device_availability::file;
  const std::vector<availability_span> spans{{.client = {0}, .from = when(0s), .to = when(10s)},
                                             {.client = {1}, .from = when(5s), .to = when(7s)}};
  auto who = availability_of(from, std::make_shared<const availability_trace>(spans));
  who.open_task({0}, when(0s));
  CHECK(who.is_available({0}));
  CHECK_FALSE(who.is_available({1}));
  CHECK_FALSE(who.is_available({2}));
  CHECK(who.next_change() == when(5s));
  (void)who.move_to(when(5s));
  CHECK(who.is_available({1}));
  CHECK(who.move_to(when(100s)).size() == 2);
  CHECK_FALSE(who.is_available({0}));
  CHECK_FALSE(who.next_change());
}

TEST_CASE("simultaneous changes are ordered by client") {
  auto from = of_clients(3);
  from.devices.availability = device_availability::file;
  const std::vector<availability_span> spans{{.client = {0}, .from = when(0s), .to = when(5s)},
                                             {.client = {1}, .from = when(5s), .to = when(7s)},
                                             {.client = {2}, .from = when(0s), .to = when(5s)}};
  auto who = availability_of(from, std::make_shared<const availability_trace>(spans));
  who.open_task({0}, when(0s));
  std::vector<std::pair<std::uint32_t, kind>> found;
  for (const auto& change : who.move_to(when(5s)))
    found.emplace_back(change.client.value, change.change_kind);
  const std::vector<std::pair<std::uint32_t, kind>> expected{
      {0, kind::unreachable}, {1, kind::reachable}, {2, kind::unreachable}};
  CHECK((found == expected));
}

TEST_CASE("staggered clients enter a task at a uniform time after the server and never return to the old one") {
  constexpr std::uint32_t clients = 10'000;
  auto from = of_clients(clients);
  from.tasks.transition = task_transition::staggered;
  from.tasks.transition_spread = 100s;
  auto who = availability_of(from);
  who.open_task({0}, when(0s));
  CHECK_FALSE(who.next_change()); // all clients begin with the first task
  who.open_task({1}, when(1000s));
  CHECK(who.task_of({5}) == task_id{0});
  std::vector<double> delays;
  for (const auto& change : who.move_to(when(1050s))) {
    CHECK(change.change_kind == kind::entered_task);
    CHECK(who.task_of(change.client) == task_id{1});
    delays.push_back(in_seconds(change.at) - 1000.0);
  }
  CHECK(std::abs(std::ssize(delays) - clients / 2) < 4 * 50);
  CHECK(moments_of(delays).mean == Catch::Approx(25.0).margin(4 * 50 / std::sqrt(12.0 * clients / 2)));
  who.open_task({2}, when(1050s)); // before all clients have entered the second task
  std::map<std::uint32_t, task_id> newest;
  for (const auto& change : who.move_to(when(1200s))) {
    CHECK(change.task > newest[change.client.value]);
    newest[change.client.value] = change.task;
  }
  for (std::uint32_t c = 0; c < clients; ++c)
    REQUIRE(who.task_of({c}) == task_id{2});
}
