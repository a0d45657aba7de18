// Model check by random play: thousands of small random federations, whose peers respond in any order, must agree with
// a simulator that runs one client at a time.
#include "tests/runtime/federation/model_check/player.hpp"
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <iostream>
using namespace mneme;
using namespace mneme::test;

namespace {

std::string shown(const event_record& event) {
  std::ostringstream text;
  text << in_seconds(event.at) << ' ' << event.actor << ' ' << event.event;
  if (event.client)
    text << ' ' << event.client->value;
  text << " task " << event.task.value << " round " << event.round.value << " bytes " << event.bytes;
  return text.str();
}

/// First difference of two lists of events, or "".
std::string first_difference(const std::vector<event_record>& expected, const std::vector<event_record>& found) {
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const auto wanted = i < expected.size() ? shown(expected[i]) : "nothing";
    const auto got = i < found.size() ? shown(found[i]) : "nothing";
    if (wanted != got || (i < found.size() && expected[i].at != found[i].at))
      return "event " + std::to_string(i) + ": expected " + wanted + ", found " + got;
  }
  return {};
}

/// Describes the differences of two outcomes; "" if they are equal.
std::string difference(const run_outcome& expected, const run_outcome& found) {
  if (auto where = first_difference(expected.events, found.events); !where.empty())
    return where;
  if (expected.models != found.models)
    return "another model after a step";
  const auto &a = expected.report, &b = found.report;
  const auto counts = [](const run_report& report) {
    return std::vector{report.rounds,       report.client_rounds,  report.late_uploads,  report.dropped,
                       report.enrolled_max, report.joined,         report.left,          report.transitions,
                       report.upload_bytes, report.download_bytes, report.staleness_sum, report.staleness_max,
                       report.proxy_bytes,  report.observations};
  };
  if (counts(a) != counts(b))
    return "another count in the report";
  if (a.counts != b.counts)
    return "another sum of what clients count";
  if (a.ended != b.ended)
    return "another end";
  if (a.digest != b.digest)
    return "another digest";
  if (expected.evaluations.size() != found.evaluations.size())
    return "another number of evaluations";
  for (std::size_t i = 0; i < expected.evaluations.size(); ++i)
    if (const auto& wanted = expected.evaluations[i], &got = found.evaluations[i];
        wanted.at != got.at || wanted.round != got.round || wanted.accuracy != got.accuracy || wanted.loss != got.loss)
      return "another evaluation";
    else if (wanted.training_loss != got.training_loss)
      return "another training loss";
  return {};
}

/// True if even the batches of an interrupted run must equal those of an uninterrupted one. This requires that finished
/// results are stored, and that all jobs of a stage fit into memory together, so that no stage is interrupted halfway.
bool repeats_no_job(const toy_federation& toy) {
  const auto& settings = toy.settings;
  const bool stores_results = settings.stored_results_bytes_max > 0 || !settings.results_are_repeatable;
  return stores_results && (toy.has_single_jobs() || settings.ahead_bytes_max >= toy_federation::plenty);
}

/// Checks the end of a run in which nothing can be delivered any more. Returns an error text, or "".
std::string fault_of_dead_end(const toy_federation& toy, std::uint64_t seed) {
  try {
    static_cast<void>(played(toy, {.seed = seed}));
  } catch (const broken_rule& rule) { // thrown for a run that fails, with its error
    const std::string error_text = rule.what();
    return error_text.starts_with("no upload arrived in the last ") ? "" : "at a dead end: " + error_text;
  }
  return "expected a dead end";
}

/// Plays one federation in several ways. Returns an error text, or "".
std::string fault_of(std::uint64_t seed) {
  const auto toy = random_federation(seed);
  try {
    const auto expected = simulated(toy);
    if (!expected)
      return {};
    if (expected->report.status == run_status::failed)
      return fault_of_dead_end(toy, seed);
    const auto orderly = played(toy, {.seed = seed});
    if (auto text = difference(*expected, orderly); !text.empty())
      return "in order: " + text;
    const std::vector<play_style> styles{{.seed = seed, .in_order = false},
                                         {.seed = seed, .in_order = false, .lose_host = 0.05},
                                         {.seed = seed, .in_order = false, .cut_off = 0.02, .stop = 0.02}};
    for (const auto& style : styles) {
      const std::string name = style.stop > 0.0        ? "interrupted: "
                               : style.lose_host > 0.0 ? "with lost hosts: "
                                                       : "in any order: ";
      const auto found = played(toy, style);
      if (auto text = difference(*expected, found); !text.empty())
        return name + text;
      if ((style.stop == 0.0 || repeats_no_job(toy)) && found.report.trace_digest != orderly.report.trace_digest)
        return name + "other batches";
    }
  } catch (const broken_rule& rule) {
    return std::string("broken rule: ") + rule.what();
  }
  return {};
}

/// Checks the end of a run in which clients fail, however far computing is ahead of virtual time. Returns an error
/// text, or "".
std::string fault_of_failing(std::uint64_t seed, int& failed) {
  auto toy = random_federation(seed);
  toy.fails_one_of = 12;
  toy.settings.ahead_bytes_max = 1;
  try {
    const auto expected = played(toy, {.seed = seed});
    failed += expected.report.status == run_status::failed ? 1 : 0;
    for (const auto ahead : {std::int64_t{1}, std::int64_t{40}, toy_federation::plenty})
      for (const auto& style : {play_style{.seed = seed, .in_order = false},
                                play_style{.seed = seed, .in_order = false, .cut_off = 0.02, .stop = 0.02}}) {
        toy.settings.ahead_bytes_max = ahead;
        const auto found = played(toy, style);
        const auto where = fmt::format("{} bytes ahead{}: ", ahead, style.stop > 0.0 ? ", interrupted" : "");
        if (expected.report.error != found.report.error)
          return where + "expected '" + expected.report.error + "', found '" + found.report.error + "'";
        if (auto text = difference(expected, found); !text.empty())
          return where + text;
      }
  } catch (const broken_rule& rule) {
    return std::string("broken rule: ") + rule.what();
  }
  return {};
}

/// Seed set in the environment, or `usual`.
std::uint64_t first_seed(std::uint64_t usual) {
  const char* given = std::getenv("MNEME_PLAY_SEED");
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

/// Plays seeds in sequence. @param go_on called before each federation; false ends the sequence
template <class GoOn>
void play_while(std::uint64_t seed, GoOn go_on) {
  std::cout << "random play from seed " << seed << " (MNEME_PLAY_SEED)" << std::endl;
  std::uint64_t played = 0;
  for (; go_on(played); ++seed, ++played) {
    const auto fault = fault_of(seed);
    INFO("MNEME_PLAY_SEED=" << seed);
    REQUIRE(fault == "");
  }
  std::cout << "federations played: " << played << std::endl;
}

} // namespace

TEST_CASE("random federations equal the sequential simulator in any order, interrupted and resumed", "[play]") {
  play_while(first_seed(1), [](std::uint64_t played) { return played < 5000; });
}

TEST_CASE("a run with churn but no deliveries fails as stalled and names the cause", "[play]") {
  constexpr std::uint64_t seed = 1'795'845'549'202'044'929; // found by random play
  CHECK(simulated(random_federation(seed))->report.status == run_status::failed);
  CHECK(fault_of(seed) == "");
}

TEST_CASE("the host of a shard that is lost after reporting rounds without jobs is replaced", "[play]") {
  CHECK(fault_of(1'795'846'190'903'114'181) == ""); // found by random play
}

TEST_CASE("a run fails equally for any lookahead, order, interruption and resume", "[play]") {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    const auto fault = fault_of_failing(seed, failed);
    REQUIRE(fault == "");
  }
  CHECK(failed > 100);
}

TEST_CASE("random federations equal the sequential simulator for ten minutes", "[play][slow]") {
  const auto today = std::chrono::system_clock::now().time_since_epoch().count(); // new seeds each time
  const auto began = std::chrono::steady_clock::now();
  play_while(first_seed(static_cast<std::uint64_t>(today)),
             [&](std::uint64_t) { return std::chrono::steady_clock::now() - began < std::chrono::minutes(10); });
}
