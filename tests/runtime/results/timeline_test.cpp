#include "runtime/base/archive.hpp"
#include "runtime/results/timeline.hpp"
#include <catch2/catch_test_macros.hpp>
#include <limits>
using namespace mneme;

namespace {

/// Round `r`, with counts derived from r.
timeline_bin round_of(std::uint32_t r) {
  return {.first = round_id{r},
          .last = round_id{r},
          .task = task_id{r / 1'000},
          .at = virtual_time(std::chrono::seconds(r + 1)),
          .in_flight = r % 7,
          .clients_enrolled = 100 + r,
          .client_rounds = 10 * (r + 1),
          .upload_bytes = 1'000 * (std::int64_t{r} + 1),
          .staleness_sum = 5 * (std::int64_t{r} + 1)};
}

timeline after(std::uint32_t rounds) {
  timeline made;
  for (std::uint32_t r = 0; r < rounds; ++r)
    made.add(round_of(r));
  return made;
}

} // namespace

TEST_CASE("a timeline has a bin per round, but at most a thousand bins") {
  CHECK(after(0).bins().empty());
  CHECK(after(1'000).bins().size() == 1'000);
  CHECK(after(1'000).bins()[999].first == round_id{999});
  const auto doubled = after(1'001); // bins of two rounds, and the last has one
  REQUIRE(doubled.bins().size() == 501);
  CHECK(doubled.bins()[0].first == round_id{0});
  CHECK(doubled.bins()[0].last == round_id{1});
  CHECK(doubled.bins()[0].client_rounds == 20);
  CHECK(doubled.bins()[500].first == round_id{1'000});
  for (const std::uint32_t rounds : {1'999U, 2'000U, 2'001U, 54'321U}) {
    const auto bins = after(rounds).bins();
    CHECK(bins.size() <= timeline::bins_max);
    CHECK(bins.size() >= timeline::bins_max / 2);
    CHECK(bins.front().first == round_id{0});
    CHECK(bins.back().last == round_id{rounds - 1});
    for (std::size_t i = 1; i < bins.size(); ++i)
      REQUIRE(bins[i].first.value == bins[i - 1].last.value + 1);
  }
}

TEST_CASE("a bin has the counts at its end and the largest number in flight") {
  const auto bins = after(8'000).bins(); // eight rounds each
  REQUIRE(bins.size() == 1'000);
  CHECK(bins[0].in_flight == 0); // round 7
  CHECK(bins[0].in_flight_max == 6);
  CHECK(bins[0].clients_enrolled == 107);
  CHECK(bins[0].upload_bytes == 8'000);
  CHECK(bins[999].task == task_id{7});
}

TEST_CASE("a timeline continues after a checkpoint as if uninterrupted") {
  auto first = after(1'500);
  archive saved;
  saved(first);
  archive loading(saved.contents(), 0, saved.contents()->size());
  timeline second;
  loading(second);
  loading.expect_end();
  for (std::uint32_t r = 1'500; r < 2'500; ++r)
    second.add(round_of(r));
  CHECK((second.bins() == after(2'500).bins()));
}

TEST_CASE("a loaded timeline with a count that no run can have is refused") {
  const auto load = [](timeline_bin bin) {
    timeline made;
    made.add(bin);
    archive saved;
    saved(made);
    archive loading(saved.contents(), 0, saved.contents()->size());
    timeline loaded;
    loading(loaded);
  };
  CHECK_NOTHROW(load({.dropped = 1, .upload_bytes = std::int64_t{1} << 62}));
  CHECK_THROWS_AS(load({.client_rounds = -1}), archive_error);
  CHECK_THROWS_AS(load({.dropped = -1}), archive_error);
  CHECK_THROWS_AS(load({.upload_bytes = std::numeric_limits<std::int64_t>::max()}), archive_error);
}

TEST_CASE("a line of the timeline counts tasks and rounds from 1") {
  CHECK(json_text(round_of(3)) ==
        R"({"first_round":4,"round":4,"task":1,"virtual_s":4.0,"in_flight":3,"in_flight_max":0,"clients_enrolled":103,)"
        R"("client_rounds":40,"late_uploads":0,"dropped":0,"upload_bytes":4000,"download_bytes":0,)"
        R"("staleness_mean":0.5,"training_loss":null})");
  CHECK(json_text(timeline_bin{}).find(R"("staleness_mean":null)") != std::string::npos);
}

TEST_CASE("a round that the timeline already has is not added again") {
  timeline course;
  course.add({.first = {3}, .last = {3}});
  CHECK_THROWS_AS(course.add({.first = {3}, .last = {3}}), std::invalid_argument);
  CHECK_THROWS_AS(course.add({.first = {2}, .last = {2}}), std::invalid_argument);
  CHECK(course.bins().size() == 1);
}
