#include "tests/support/scratch.hpp"
#include "tools/study/activity_figures.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

/// Two rounds: client 1 is last in the first; in the second only client 0 delivers, since client 1 is late.
constexpr const char* two_rounds = "virtual_s,actor,event,client,task,round,bytes\n"
                                   "0,scheduler,open_round,,1,1,0\n"
                                   "0,scheduler,dispatch,0,1,1,8\n"
                                   "0,scheduler,dispatch,1,1,1,8\n"
                                   "1,client,start,0,1,1,0\n"
                                   "2,client,start,1,1,1,0\n"
                                   "3,client,upload,0,1,1,8\n"
                                   "4,server,deliver,0,1,1,8\n"
                                   "6,client,upload,1,1,1,8\n"
                                   "10,server,deliver,1,1,1,8\n"
                                   "10,scheduler,close_round,,1,1,0\n"
                                   "10,scheduler,open_round,,1,2,0\n"
                                   "10,scheduler,dispatch,0,1,2,8\n"
                                   "10,scheduler,dispatch,1,1,2,8\n"
                                   "11,client,start,0,1,2,0\n"
                                   "12,client,start,1,1,2,0\n"
                                   "13,client,upload,0,1,2,8\n"
                                   "14,server,deliver,0,1,2,8\n"
                                   "15,scheduler,deadline,,1,2,0\n"
                                   "15,client,late,1,1,2,0\n"
                                   "15,scheduler,close_round,,1,2,0\n";

expected<std::optional<run_activity>> activity_of(const std::string& events, bool drops_late = true) {
  const scratch_folder folder;
  write_file(folder.path() / "events.csv", events);
  return read_activity(folder.path(), drops_late);
}

} // namespace

TEST_CASE("a trace gives the activities of each client, and the client for which a round waited") {
  const auto activity = activity_of(two_rounds);
  REQUIRE(activity);
  REQUIRE(*activity);
  const auto& rounds = (*activity)->rounds;
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].download_s == 2.0);
  CHECK(rounds[0].compute_s == 4.0);
  CHECK(rounds[0].upload_s == 4.0);
  CHECK(rounds[0].other_s == 0.0);
  CHECK(rounds[1].download_s == 1.0);
  CHECK(rounds[1].compute_s == 2.0);
  CHECK(rounds[1].upload_s == 1.0);
  CHECK(rounds[1].other_s == 1.0); // until the deadline
  const auto& median = (*activity)->median_round;
  CHECK(median.round == 2);
  REQUIRE(median.spans.size() == 6);
  CHECK(median.spans[3].activity == client_activity::waiting);
  CHECK(median.spans[3].from_s == 14.0);
  CHECK(median.spans[3].to_s == 15.0);
  CHECK(median.spans[5].client == 1);
  CHECK(median.spans[5].activity == client_activity::late);
  CHECK(median.spans[5].from_s == 12.0);
}

TEST_CASE("bins hold the mean number of clients in each activity") {
  const auto activity = activity_of(two_rounds);
  const auto& bins = (*activity)->bins; // 20 of 0.75 s
  REQUIRE(bins.size() == 20);
  CHECK(bins[0].clients[static_cast<std::size_t>(client_activity::downloading)] == Approx(2.0));
  const auto computing = static_cast<std::size_t>(client_activity::computing);
  CHECK(bins[1].clients[computing] == Approx(0.5 / 0.75)); // client 0 from 1 s on
  double sum_s = 0.0;
  for (const auto& bin : bins)
    sum_s += 0.75 * bin.clients[computing];
  CHECK(sum_s == Approx(2.0 + 4.0 + 2.0));
}

TEST_CASE("late work that is kept continues after its deadline") {
  const auto activity = activity_of(std::string(two_rounds) + "18,server,deliver,1,1,3,8\n", false);
  double late_s = 0.0;
  for (const auto& bin : (*activity)->bins)
    late_s += 18.0 / 20.0 * bin.clients[static_cast<std::size_t>(client_activity::late)];
  CHECK(late_s == Approx(3.0));
}

TEST_CASE("a run without a trace has no activity, and a damaged line is named") {
  const scratch_folder folder;
  const auto none = read_activity(folder.path(), true);
  REQUIRE(none);
  CHECK_FALSE(*none);
  const auto damaged = activity_of("virtual_s,actor,event,client,task,round,bytes\n0,scheduler,open_round\n");
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().front().where.ends_with("events.csv:2"));
}

TEST_CASE("the Gantt chart has a row per client, and time to accuracy has its parts") {
  reported_run run;
  run.activity = **activity_of(two_rounds);
  const auto gantt = gantt_figure(*run.activity, "gantt-1", "Clients in a round");
  REQUIRE(gantt);
  CHECK(gantt->rows == std::vector<std::string>{"0", "1"});
  CHECK(gantt->from == 10.0);
  CHECK(gantt->to == 15.0);
  const auto svg = svg_of(*gantt, image_place::file);
  CHECK(svg.find("client 1, late: 12 to 15") != std::string::npos);
  run.evaluations = {{.at = virtual_time(std::chrono::seconds(10)), .accuracy = 40.0},
                     {.at = virtual_time(std::chrono::seconds(15)), .accuracy = 80.0}};
  const auto parts = round_time_chart(run, "time-parts-1", "Time to accuracy and its parts");
  REQUIRE(parts);
  REQUIRE(parts->categories.back() == "80.0");
  CHECK(parts->kinds[0].bars.back()->value == 3.0);
  CHECK(parts->kinds[1].bars.back()->value == 6.0);
  CHECK(parts->kinds[2].bars.back()->value == 5.0);
  CHECK(parts->kinds[3].bars.back()->value == 1.0);
  CHECK(parts->kinds[1].bars.front()->value == 4.0); // after the first round
}
