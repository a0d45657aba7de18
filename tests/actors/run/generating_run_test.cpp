// Runs of OSI-FL: digests, output files, interrupted training of its generator, and rejected settings of the one-shot
// federation.
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <thread>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const auto one_shot = made_scenario({{"seed", 3},
                                     {"data.shape", raw_toml("[1, 8, 8]")},
                                     {"data.classes", 4},
                                     {"data.rows", 400},
                                     {"tasks.count", 2},
                                     {"partition.kind", "iid"},
                                     {"clients.count", 6},
                                     {"enrolment.kind", "table"},
                                     {"enrolment.table", raw_toml("[\"AO\", \"XA\"]")},
                                     {"rounds.cohort", 0},
                                     {"model.name", "linear"},
                                     {"training.batch", 8},
                                     {"strategy.name", "osi-fl"},
                                     {"strategy.images", 6},
                                     {"strategy.retained_per_class", 2},
                                     {"strategy.sampling_steps", 4},
                                     {"strategy.encoder_passes", 2},
                                     {"strategy.denoiser_passes", 4}});

} // namespace

TEST_CASE("OSI-FL has one digest for all threads, workers, widths and shards") {
  const auto reference = run_toml(one_shot, {.threads = 1});
  REQUIRE(reference.summary.status == "done");
  CHECK(reference.summary.client_rounds == 6); // each client once
  CHECK(reference.summary.rounds == 2);
  CHECK(reference.summary.upload_bytes == 6 * (2 * (512 * 4 + 8) + 4));
  CHECK(reference.summary.figures.at("paper_params") == 1024.0);
  CHECK(reference.summary.figures.at("generated_images") == 6 * 2 * 6);
  CHECK(reference.summary.figures.at("retained_images") == 2 * 4);
  for (const auto& [over, threads] :
       std::vector<std::pair<overrides, std::int64_t>>{{{}, 3},
                                                       {{{"worker.fused_clients_max", "1"}}, 1},
                                                       {{{"worker.fused_clients_max", "3"}, {"worker.count", "3"}}, 2},
                                                       {{{"worker.shards", "4"}}, 2}}) {
    const auto other = run_toml(one_shot, {.over = over, .threads = threads});
    CHECK(other.summary.run_digest == reference.summary.run_digest);
    CHECK(other.model == reference.model);
  }
}

TEST_CASE("images conditioned on moments of public rows have one digest, which differs from that of other conditions") {
  const overrides matched{{"strategy.match_moments", "true"}, {"strategy.components", "20"}};
  const auto reference = run_toml(one_shot, {.over = matched, .threads = 1});
  REQUIRE(reference.summary.status == "done");
  auto sharded = matched;
  sharded.emplace_back("worker.shards", "3");
  CHECK(run_toml(one_shot, {.over = sharded, .threads = 3}).summary.run_digest == reference.summary.run_digest);
  const auto own = run_toml(one_shot, {.over = {{"strategy.components", "20"}}});
  CHECK(own.summary.run_digest != reference.summary.run_digest);
  CHECK(own.summary.run_digest != run_toml(one_shot).summary.run_digest);
}

TEST_CASE("OSI-FL without retained images equals OSCAR-IL byte for byte") {
  const auto none = run_toml(one_shot, {.over = {{"strategy.retained_per_class", "0"}}});
  const auto incremental = run_toml(one_shot, {.over = {{"strategy.mode", "\"oscar-il\""}}});
  CHECK(none.model == incremental.model);
  CHECK(none.model != run_toml(one_shot).model);
}

TEST_CASE("a run directory contains the generated images as a PNG file") {
  const workshop shop(one_shot);
  REQUIRE(shop.run("shown").status == "done");
  const auto bytes = content_of(shop.path("shown") / "samples.png");
  CHECK(bytes.substr(1, 3) == "PNG");
  CHECK(bytes.substr(16, 8) == std::string{0, 0, 0, 6 * 8, 0, 0, 0, 4 * 8}); // six images of each of four classes
}

TEST_CASE("OSI-FL resumes from any event with an equal digest") {
  const workshop shop(one_shot.with({{"checkpoint.force", true}}));
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 5}, workers::others) > 2);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
}

TEST_CASE("interrupted training of a generator resumes at its last slice", "[slow]") {
  const workshop shop(one_shot.with({{"strategy.denoiser_passes", 400}}));
  const auto whole = shop.run("whole", {.threads = 1});
  std::atomic<int> interrupts = 0;
  std::atomic<bool> is_over = false;
  std::thread watcher([&] { // slices are saved after a second, in the middle of the training
    while (!is_over && !fs::exists(shop.path("early") / "checkpoint" / "programs"))
      std::this_thread::yield();
    interrupts = 1;
  });
  const auto early = shop.run("early", {.threads = 1, .interrupts = &interrupts});
  is_over = true;
  watcher.join();
  REQUIRE(early.status == "interrupted");
  CHECK(fs::exists(shop.path("early") / "checkpoint" / "programs"));
  CHECK(shop.resume("early", {.threads = 2}).run_digest == whole.run_digest);
  check_equal_files(shop.path("whole"), shop.path("early"), workers::others);
}

TEST_CASE("OSI-FL without public rows or parts of its condition is rejected with the keys") {
  const auto wrong = refusal_of(one_shot.with({{"partition.public_share", 0.0}}).text());
  CHECK_THAT(wrong, ContainsSubstring("partition.public_share = 0: the generator is trained on rows that no client "
                                      "holds"));
  const auto parts = refusal_of(one_shot.with({{"strategy.condition", "sd77x768"}}).text());
  CHECK_THAT(parts, ContainsSubstring("no caption_encoder; expected a file") &&
                        ContainsSubstring("no picture_decoder; expected a file"));
  const auto async = refusal_of(one_shot.with({{"rounds.mode", "async"}}).text());
  CHECK_THAT(async, ContainsSubstring("rounds.mode"));
}
