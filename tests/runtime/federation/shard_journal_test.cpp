#include "runtime/federation/shard_journal.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

population two_clients() {
  scenario from;
  from.clients.count = 2;
  return population(from);
}

issued_job job(std::uint64_t round, std::uint32_t stage, std::uint32_t step = 0) {
  return {.id = {{round}, stage, step}, .key = {.kind = 0, .options = 1}, .rows = 10, .bytes = 4, .width = 8};
}

finished_round end_of(std::uint64_t round) {
  finished_round ended;
  ended.id = {round};
  return ended;
}

round_failure failure_of(std::uint64_t round, std::uint32_t client) {
  round_failure why;
  why.last_job = {{round}, 0, 0};
  why.client = {client};
  why.reason = "NaN";
  return why;
}

/// Journal of shard 3, whose host has received rounds 5 and 6 of clients 0 and 1.
class begun_shard {
public:
  explicit begun_shard(bool at_once = false) {
    journal.host_found();
    start_rounds wave{.to = {3}, .at_once = at_once};
    for (std::uint32_t c = 0; c < 2; ++c) {
      wave.assignments.emplace_back();
      wave.assignments.back().id = {5 + c};
      wave.assignments.back().client = {c};
      wave.ready.emplace_back();
    }
    journal.record(std::move(wave));
    sent = journal.take_commands().size();
  }
  [[nodiscard]] std::string report_error(std::vector<issued_job> issued, std::vector<finished_round> finished = {},
                                         std::vector<round_failure> failed = {}, bool last = true) const {
    return journal.report_error({.from = {3},
                                 .issued = std::move(issued),
                                 .finished = std::move(finished),
                                 .failed = std::move(failed),
                                 .last = last});
  }
  population clients = two_clients();
  shard_journal journal{{3}, clients};
  std::size_t sent = 0;
};

} // namespace

TEST_CASE("the last report of a wave must cover every round") {
  begun_shard shard;
  CHECK(shard.journal.rounds_pending() == 2);
  CHECK(shard.report_error({}) == "ends its wave, but 2 rounds are missing");
  CHECK(shard.report_error({job(5, 0)}) == "ends its wave, but 1 rounds are missing");
  CHECK(shard.report_error({job(5, 0)}, {}, {}, false).empty());
  CHECK(shard.report_error({job(5, 0)}, {end_of(6)}).empty());
  CHECK(shard.report_error({job(5, 0)}, {}, {failure_of(6, 1)}).empty());
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 0)}, .last = false}).empty());
  CHECK(shard.journal.rounds_pending() == 1);
}

TEST_CASE("a report must contain each of its rounds once, in order, and no other") {
  const begun_shard shard;
  CHECK(shard.report_error({job(5, 0), job(6, 0)}, {end_of(6)}) == "names assignment 6 twice");
  CHECK(shard.report_error({}, {end_of(5), end_of(5)}) == "names assignment 5 out of order");
  CHECK(shard.report_error({}, {end_of(5), end_of(6)}, {failure_of(6, 1)}) == "names assignment 6 twice");
  CHECK(shard.report_error({job(6, 0), job(5, 0)}) == "names assignment 5 out of order");
  CHECK(shard.report_error({job(7, 0)}) == "names assignment 7, which its shard does not have");
  CHECK(shard.report_error({job(5, 1)}) == "has a stage of assignment 5 that is not its next one");
  CHECK(shard.report_error({job(5, 0, 1)}) == "has a stage of assignment 5 that is not its next one");
  CHECK(shard.report_error({}, {}, {failure_of(5, 1), failure_of(6, 1)}) == "names a wrong client for assignment 5");
}

TEST_CASE("rounds without released jobs do not advance, and unrequested reports are refused") {
  begun_shard shard;
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 0), job(5, 0, 1), job(6, 0)}}).empty());
  CHECK(shard.report_error({job(5, 1)}) == "was not requested");
  CHECK_FALSE(shard.journal.awaits_reply());
  shard.journal.record(release{.to = {3}, .batches = {{{{5}, 0, 0}, {{6}, 0, 0}}}});
  CHECK(shard.journal.rounds_pending() == 1); // the second job of round 5 is parked
  CHECK(shard.report_error({}, {end_of(5)}) == "continues assignment 5 too early");
  CHECK(shard.report_error({job(5, 1)}, {end_of(6)}) == "continues assignment 5 too early");
  CHECK(shard.journal.record({.from = {3}, .finished = {end_of(6)}}).empty());
  shard.journal.record(release{.to = {3}, .batches = {{{{5}, 0, 1}}}});
  CHECK(shard.report_error({}) == "ends its wave, but 1 rounds are missing");
  CHECK(shard.report_error({}, {end_of(6)}) == "names assignment 6, which its shard does not have"); // repeated
  CHECK(shard.report_error({job(5, 1)}).empty());
}

TEST_CASE("batches that started at once are reported once, complete and without empty ones, and become pending") {
  begun_shard shard(true);
  const auto with = [&](std::vector<composition> released, bool last = false) {
    return wave_report{.from = {3}, .issued = {job(5, 0), job(6, 0)}, .released = std::move(released), .last = last};
  };
  const job_id first{{5}, 0, 0}, second{{6}, 0, 0};
  CHECK(shard.journal.report_error(with({{first}})) == "lists batches that were not requested");
  CHECK(shard.journal.report_error(with({{first, second}, {}})) == "lists batches that were not requested");
  CHECK(shard.journal.report_error(with({{first, second}}, true)) == "ends its wave, but 2 rounds are missing");
  CHECK(shard.journal.record(with({{first}, {second}})).empty());
  CHECK(shard.journal.report_error(with({{first, second}})) ==
        "has a stage of assignment 5 that is not its next one"); // reported twice
  CHECK(shard.report_error({}, {end_of(5)}) == "ends its wave, but 1 rounds are missing");
  CHECK(shard.report_error({}, {end_of(5), end_of(6)}).empty());
}

TEST_CASE("the absence of immediate jobs is reported once, by any host") {
  begun_shard shard(true);
  CHECK(shard.journal.record({.from = {3}, .released = std::vector<composition>{}, .last = false}).empty());
  shard.journal.host_lost();
  shard.journal.host_found();
  const auto again = shard.journal.take_commands();
  REQUIRE(again.size() == 1);
  CHECK(std::get<start_rounds>(again[0]).assignments.size() == 2);
  CHECK_FALSE(std::get<start_rounds>(again[0]).at_once);
  CHECK(shard.journal.record({.from = {3}, .finished = {end_of(5), end_of(6)}}).empty());
  CHECK(shard.journal.is_idle());
}

TEST_CASE("rounds_with_work() counts rounds whose jobs another host would have to rerun") {
  begun_shard shard;
  auto& journal = shard.journal;
  CHECK(journal.rounds_with_work() == 0);
  CHECK(journal.record({.from = {3}, .issued = {job(5, 0), job(6, 0)}}).empty());
  CHECK(journal.is_quiet());
  CHECK(journal.rounds_with_work() == 0); // all jobs are parked
  journal.record(release{.to = {3}, .batches = {{{{5}, 0, 0}}}});
  CHECK(journal.rounds_with_work() == 1);
  CHECK(journal.record({.from = {3}, .issued = {job(5, 1)}}).empty());
  CHECK(journal.is_quiet());
  CHECK(journal.rounds_with_work() == 1); // stage 0 of round 5 is computed
}

TEST_CASE("a host that reruns rounds reports all of them up to their position") {
  begun_shard shard;
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 0), job(6, 0)}}).empty());
  shard.journal.record(release{.to = {3}, .batches = {{{{5}, 0, 0}}}});
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 1)}}).empty());
  static_cast<void>(shard.journal.take_reports());
  shard.journal.host_lost();
  shard.journal.host_found();
  CHECK(shard.journal.rounds_pending() == 2);
  CHECK(shard.report_error({job(5, 0)}) == "ends its wave, but 1 rounds are missing");
  CHECK(shard.report_error({job(6, 0)}, {end_of(5)}) == "ends assignment 5 too early");
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 0), job(6, 0)}}).empty());
  CHECK(shard.journal.rounds_pending() == 1); // round 5 has not caught up
  CHECK(shard.report_error({}) == "ends its wave, but 1 rounds are missing");
  CHECK(shard.report_error({job(6, 1)}) == "continues assignment 6 too early");
  CHECK(shard.journal.stages_reported({5}) == 1);
  CHECK(shard.journal.record({.from = {3}, .issued = {job(5, 1)}}).empty());
  CHECK(shard.journal.stages_reported({5}) == 2);
  CHECK_FALSE(shard.journal.awaits_reply());
}
