#include "runtime/federation/open_wave.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

round_failure failure_at(std::uint64_t assignment) {
  return {.last_job = {.assignment = {assignment}}, .reason = std::to_string(assignment)};
}

} // namespace

TEST_CASE("a wave ends with the last report of every shard that received work") {
  open_wave wave;
  CHECK_FALSE(wave.is_out());
  wave.started(false);
  wave.released();
  CHECK(wave.is_out());
  CHECK(wave.is_known());
  CHECK_FALSE(wave.ends_with_report());
  CHECK(wave.ends_with_report());
  CHECK_FALSE(wave.is_out());
}

TEST_CASE("the batches of a wave are known once all shards have reported, in shard order") {
  open_wave wave;
  for (int s = 0; s < 3; ++s)
    wave.started(true);
  CHECK_FALSE(wave.is_known());
  const auto list_of = [](std::uint32_t shard) { return shard_batches{.shard = {shard}, .batches = {{}}}; };
  CHECK(wave.listed(list_of(2)).empty());
  CHECK(wave.listed(list_of(0)).empty());
  const auto lists = wave.listed(list_of(1));
  CHECK(wave.is_known());
  REQUIRE(lists.size() == 3);
  for (std::uint32_t s = 0; s < 3; ++s)
    CHECK(lists[s].shard == shard_id{s});
}

TEST_CASE("the failure of the lowest job is reported, whichever arrives first") {
  open_wave wave;
  wave.failed(failure_at(7));
  wave.failed(failure_at(3));
  wave.failed(failure_at(5));
  REQUIRE(wave.failure());
  CHECK(wave.failure()->reason == "3");
}
