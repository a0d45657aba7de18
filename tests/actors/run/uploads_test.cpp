// Runs with [uploads], [aggregation] and attackers: digests, resumption, bytes, virtual time and epsilon.
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const auto plain = eventful_scenario().without("rounds.late").without("rounds.deadline");
const auto compressed = plain.with(
    {{"uploads.clip_norm", 0.5}, {"uploads.top_k", 0.1}, {"uploads.quantise", 4}, {"uploads.error_feedback", true}});
const auto private_run = plain.with({{"uploads.clip_norm", 0.5}, {"uploads.noise_multiplier", 0.3}});
const auto local_noise = private_run.with({{"uploads.noise", "client"}});
const auto tree_noise = plain.with({{"strategy.name", "dp-ftrl"}, {"strategy.server_momentum", 0.5}});
const auto robust =
    plain.with({{"aggregation.rule", "trimmed-mean"}, {"clients.attack", "label-flip"}, {"clients.attackers", 0.2}});
const auto krum = plain.with({{"aggregation.rule", "krum"},
                              {"aggregation.byzantine", 1},
                              {"clients.attack", "noise"},
                              {"clients.attackers", 0.2}});

run_summary summary_of(const scenario_text& scenario) { return run_toml(scenario).summary; }

} // namespace

TEST_CASE("runs with upload steps have one digest for 1, 2 and 3 threads") {
  for (const auto& scenario : {compressed, private_run, local_noise, tree_noise, robust, krum}) {
    CAPTURE(scenario.text());
    const auto one = run_toml(scenario, {.threads = 1});
    REQUIRE(one.summary.status == "done");
    for (const std::int64_t threads : {2, 3}) {
      const auto more = run_toml(scenario, {.threads = threads});
      CHECK(more.summary.run_digest == one.summary.run_digest);
      CHECK(more.model == one.model);
    }
  }
}

TEST_CASE("runs with upload steps differ from each other and from the plain run") {
  std::vector<std::string> digests;
  for (const auto& scenario : {plain, compressed, private_run, local_noise, tree_noise, robust, krum})
    digests.push_back(summary_of(scenario).run_digest);
  std::sort(digests.begin(), digests.end());
  CHECK(std::adjacent_find(digests.begin(), digests.end()) == digests.end());
}

TEST_CASE("steps without effect on the values keep the model of the plain run") {
  const auto usual = run_toml(plain);
  CHECK(run_toml(plain.with({{"uploads.clip_norm", 1e6}})).model == usual.model);
  const auto masked = run_toml(plain.with({{"uploads.secure_aggregation", "masked"}}));
  CHECK(masked.model == usual.model);
  CHECK(masked.summary.upload_bytes > usual.summary.upload_bytes);
  CHECK(masked.summary.download_bytes > usual.summary.download_bytes);
  CHECK(masked.summary.virtual_seconds > usual.summary.virtual_seconds);
}

TEST_CASE("compressed uploads take fewer bytes and less virtual time") {
  const scenario_text::keys slow{{"devices.uplink_mbit", 0.01}, {"devices.rows_per_second", 1e6}};
  const auto usual = summary_of(plain.with(slow)), small = summary_of(compressed.with(slow));
  // 10 % of the weights are sent. Each takes 4 bytes and 4 bits, instead of 4 bytes; an upload is rounded up.
  const auto share = static_cast<double>(small.upload_bytes) / static_cast<double>(usual.upload_bytes);
  CHECK(share > 0.1125);
  CHECK(share < 0.116);
  CHECK(small.virtual_seconds < 0.5 * usual.virtual_seconds);
}

TEST_CASE("an interrupted run with upload steps resumes with an equal digest") {
  for (const auto& scenario : {compressed, private_run, tree_noise, krum}) {
    const workshop shop(scenario.with({{"checkpoint.force", true}, {"checkpoint.keep", 1000}}));
    CAPTURE(scenario.text());
    REQUIRE(shop.run("whole").status == "done");
    CHECK(run_in_pieces(shop, "pieces", {.events_max = 37}, workers::others) > 3);
    check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  }
}

TEST_CASE("metrics.jsonl and summary.json state epsilon, which grows with the rounds") {
  const auto run = run_toml(private_run);
  double last = 0.0;
  std::istringstream lines(run.metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto epsilon = nlohmann::json::parse(line).at("epsilon").get<double>();
    CHECK(epsilon > last);
    last = epsilon;
  }
  CHECK(run.summary.figures.at("epsilon") == last);
  CHECK(run.summary.figures.at("delta") == 1e-5);
  CHECK_THAT(run_toml(plain).metrics, !ContainsSubstring("epsilon"));
}

TEST_CASE("a median limits what sign-flipping attackers do to the accuracy") {
  const auto attacked = small_scenario({{"clients.count", 10},
                                        {"rounds.cohort", 10},
                                        {"rounds.per_task", 6},
                                        {"tasks.kind", "single"},
                                        {"partition.kind", "iid"},
                                        {"training.epochs", 5},
                                        {"training.learning_rate", 0.1},
                                        {"clients.attack", "sign-flip"},
                                        {"clients.attack_scale", 5.0},
                                        {"clients.attackers", 0.2}})
                            .without("tasks.count");
  const auto mean = summary_of(attacked).metrics.final_accuracy.value();
  const auto median = summary_of(attacked.with({{"aggregation.rule", "median"}})).metrics.final_accuracy.value();
  CHECK(median > mean + 10.0);
}

TEST_CASE("bad values of upload keys are errors with place and fix") {
  const auto refused = [](const scenario_text::keys& keys) { return refusal_of(small_scenario(keys)); };
  CHECK_THAT(refused({{"uploads.clip_norm", -1.0}}), ContainsSubstring("test.toml:") && ContainsSubstring("clip_norm"));
  CHECK_THAT(refused({{"uploads.noise_multiplier", 1.0}}), ContainsSubstring("needs uploads.clip_norm > 0"));
  CHECK_THAT(refused({{"uploads.top_k", 0.0}}), ContainsSubstring("number in (0, 1]"));
  CHECK_THAT(refused({{"uploads.quantise", 1}}), ContainsSubstring("expected 2 to 16, or 0"));
  CHECK_THAT(refused({{"uploads.quantise", 17}}), ContainsSubstring("quantise"));
  CHECK_THAT(refused({{"uploads.rounding", "up"}}), ContainsSubstring("\"stochastic\" | \"nearest\""));
  CHECK_THAT(refused({{"uploads.topk", 0.1}}), ContainsSubstring("top_k"));
  CHECK_THAT(refused({{"aggregation.rule", "krumm"}}), ContainsSubstring("\"krum\""));
  CHECK_THAT(refused({{"aggregation.rule", "krum"}, {"aggregation.byzantine", 1}}),
             ContainsSubstring("2 * byzantine + 3"));
  CHECK_THAT(refused({{"aggregation.rule", "trimmed-mean"}, {"aggregation.trim", 0.5}}), ContainsSubstring("trim"));
  CHECK_THAT(refused({{"clients.attack", "noise"}}), ContainsSubstring("needs clients.attackers"));
  CHECK_THAT(refused({{"clients.attack", "noise"}, {"clients.attackers", 0.001}}),
             ContainsSubstring("so no client attacks"));
  CHECK_THAT(refused({{"aggregation.rule", "trimmed-mean"}, {"aggregation.trim", 0.001}}),
             ContainsSubstring("so no value is removed"));
}

TEST_CASE("impossible combinations of upload keys are errors with reasons") {
  const auto refused = [](const scenario_text::keys& keys) { return refusal_of(small_scenario(keys)); };
  const scenario_text::keys noise{{"uploads.clip_norm", 1.0}, {"uploads.noise_multiplier", 1.0}};
  const auto with_noise = [&](const scenario_text::keys& keys) { return refusal_of(small_scenario(noise).with(keys)); };
  CHECK(refusal_of(small_scenario(noise)).empty());
  CHECK_THAT(with_noise({{"strategy.weighting", "samples"}}), ContainsSubstring("weighting = \"uniform\""));
  CHECK_THAT(with_noise({{"uploads.quantise", 4}}), ContainsSubstring("can exceed clip_norm"));
  CHECK_THAT(with_noise({{"uploads.top_k", 0.5}, {"uploads.error_feedback", true}}),
             ContainsSubstring("is added after clipping"));
  CHECK(with_noise({{"uploads.top_k", 0.5}, {"uploads.error_feedback", true}, {"uploads.noise", "client"}}).empty());
  CHECK_THAT(with_noise({{"aggregation.rule", "median"}}), ContainsSubstring("aggregation.rule = \"mean\""));
  CHECK_THAT(with_noise({{"devices.transfer_dtype", "int8"}}), ContainsSubstring("transfer_dtype = \"fp32\""));
  CHECK_THAT(with_noise({{"strategy.name", "scaffold"}}),
             ContainsSubstring("'scaffold' uses more of an upload than its weights"));
  CHECK_THAT(with_noise({{"rounds.mode", "async"}})
                 .append(refused({{"aggregation.rule", "median"}, {"rounds.mode", "async"}})),
             ContainsSubstring("aggregation.rule = \"median\": expected rounds.mode = \"sync\""));
  CHECK_THAT(refused({{"aggregation.rule", "krum"}, {"uploads.secure_aggregation", "masked"}}),
             ContainsSubstring("this rule reads single uploads"));
  CHECK_THAT(refused({{"uploads.top_k", 0.5}, {"uploads.secure_aggregation", "masked"}}),
             ContainsSubstring("all clients mask the same entries"));
  CHECK_THAT(refused({{"uploads.top_k", 0.5}, {"strategy.name", "stsa"}}),
             ContainsSubstring("uploads.top_k = 0.5: the server of 'stsa' does not average"));
}
