#include "runtime/results/live_view.hpp"
#include <catch2/catch_test_macros.hpp>
#include <thread>
using namespace mneme;
using namespace std::chrono_literals;

namespace {

timeline_bin round_of(std::uint32_t number, std::int64_t client_rounds) {
  return {.first = {number}, .last = {number}, .client_rounds = client_rounds};
}

} // namespace

TEST_CASE("a live view has the latest state, and a new version after each change") {
  live_view view;
  CHECK(view.now().folder.empty());
  view.on_run_started("runs/a", 2, {}, {});
  view.on_round(round_of(0, 5), 5, 1, 0.5);
  view.on_round(round_of(1, 9), 9, 2, 0.75, {.rounds = 40, .tasks = 2, .elapsed_s = 3.0});
  view.evaluated({.accuracy = 62.5});
  const auto run = view.now();
  CHECK(run.folder == "runs/a");
  CHECK(run.status == "running");
  CHECK(run.workers == 2);
  CHECK(run.jobs == 9);
  CHECK(run.batches == 2);
  CHECK(run.busy_seconds == 0.75);
  CHECK(run.pace.rounds == 40);
  CHECK(run.pace.elapsed_s == 3.0);
  CHECK(run.rounds_before == 0);
  REQUIRE(run.course.size() == 2);
  CHECK(run.course[1].client_rounds == 9);
  REQUIRE(run.evaluations.size() == 1);
  CHECK(run.evaluations[0].accuracy == 62.5);
  CHECK(view.version() == 4);
  view.ended("done");
  CHECK(view.now().status == "done");
  view.on_run_started("runs/b", 1, {}, {});
  CHECK(view.now().course.empty());
  CHECK(view.now().evaluations.empty());
  CHECK(view.now().pace.rounds == 0);
  timeline course;
  course.add(round_of(0, 5));
  view.on_run_started("runs/c", 1, course, {}); // a resumed run
  CHECK(view.now().rounds_before == 1);
}

TEST_CASE("wait_beyond() returns on a change, on close() and at the timeout") {
  live_view view;
  CHECK(view.wait_beyond(0, 1ms) == 0);
  std::thread run([&] { view.on_run_started("runs/a", 1, {}, {}); });
  CHECK(view.wait_beyond(0, 60s) == 1);
  run.join();
  std::thread end([&] { view.close(); });
  (void)view.wait_beyond(1, 60s);
  end.join();
  CHECK(view.is_closed());
}
