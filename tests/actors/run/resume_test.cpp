// A run that goes on from a checkpoint ends as if nothing had happened: same digest, same files.
#include "tests/support/interrupted_runs.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <sys/file.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Every checkpoint that is due is written and stays.
scenario_text checkpointed(const scenario_text& scenario) {
  return scenario.with({{"checkpoint.force", true}, {"checkpoint.keep", 1000}});
}
const auto eventful = checkpointed(eventful_scenario());
/// Two trainings a round at the end of a task, and what is learnt between tasks.
const auto ewc = eventful.with({{"strategy.name", "fed-ewc"}});
/// Clients that share a teacher, and models that are kept at the end of each task.
const auto lwf = eventful.with({{"strategy.name", "fed-lwf"}, {"evaluation.models", "tasks"}});
const auto stsa = eventful.with({{"strategy.name", "stsa"},
                                 {"strategy.adaptation_rounds", 2},
                                 {"strategy.projection_width", 20},
                                 {"strategy.ridge", 1.0}});
const auto stsa_estimated = stsa.with({{"strategy.estimator", "estimated"}, {"strategy.dummies", 3}});

/// The server steps as uploads come.
const auto restless = checkpointed(restless_scenario())
                          .with({{"clients.count", 40},
                                 {"rounds.mode", "async"},
                                 {"rounds.per_task", 8},
                                 {"evaluation.every", 3},
                                 {"evaluation.targets", raw_toml("[30, 100]")},
                                 {"evaluation.fairness", true}});

} // namespace

TEST_CASE("from every checkpoint of a run the same end is reached") {
  const workshop shop(eventful);
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(whole.late_uploads > 3);
  const auto checkpoints = shop.checkpoints("whole");
  CHECK(checkpoints.size() == 8); // after each of nine rounds but the last
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const auto name = "from " + std::to_string(i + 1);
    CAPTURE(name);
    fs::copy(shop.path("whole"), shop.path(name), fs::copy_options::recursive);
    for (auto later = i + 1; later < checkpoints.size(); ++later)
      fs::remove(shop.path(name) / "checkpoint" / checkpoints[later].filename());
    fs::remove(shop.path(name) / "summary.json"); // as a crash leaves it, with files that have grown since
    const auto again = shop.resume(name);
    CHECK(again.run_digest == whole.run_digest);
    CHECK(again.trace_digest == whole.trace_digest);
    check_equal_files(shop.path("whole"), shop.path(name));
  }
}

TEST_CASE("a run that is interrupted at any event goes on to the same end") {
  for (const auto& scenario : {eventful, ewc, lwf, stsa, stsa_estimated}) {
    INFO(scenario.text());
    const workshop shop(scenario);
    const auto whole = shop.run("whole", {.trace = true});
    REQUIRE(whole.status == "done");
    // in between, "abandoned" and "stop" are events of the run that ended, and are cut off again
    CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 13}, workers::others) > 5);
    check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  }
}

TEST_CASE("a run whose server steps as uploads come goes on to the same end from any event") {
  const workshop shop(restless);
  REQUIRE(shop.run("whole", {.trace = true}).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 29}, workers::others) > 5);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  CHECK(run_in_pieces(shop, "again", {.trace = true, .events_max = 41, .stored_results_max = {0}}, workers::alike) > 3);
  check_equal_files(shop.path("whole"), shop.path("again"));
}

TEST_CASE("a server that steps with every upload goes on to the same end from any event") {
  const workshop shop(restless);
  const overrides every_upload{{"rounds.aggregation", "fedasync"}, {"rounds.per_task", "30"}};
  REQUIRE(shop.run("whole", {.trace = true}, every_upload).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 37}, workers::alike, every_upload) > 3);
  check_equal_files(shop.path("whole"), shop.path("pieces"));
}

TEST_CASE("a run without memory for results goes on to the same end from any event") {
  const workshop shop(restless);
  const overrides narrow{{"worker.ahead_max", "3 KiB"}};
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 31}, workers::others, narrow) > 5);
  for (const auto* name : {"metrics.jsonl", "events.csv", "model.safetensors"})
    CHECK(content_of(shop.path("whole") / name) == content_of(shop.path("pieces") / name));
  CHECK(content_of(shop.path("pieces") / "summary.json").find(whole.run_digest) != std::string::npos);
}

TEST_CASE("results known ahead of time are computed again where they are not stored") {
  for (const auto& scenario : {eventful, ewc}) {
    INFO(scenario.text());
    const workshop shop(scenario);
    REQUIRE(shop.run("whole", {.trace = true}).status == "done");
    CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 17, .stored_results_max = {0}}, workers::alike) >
          3);
    check_equal_files(shop.path("whole"), shop.path("pieces"));
  }
}

TEST_CASE("checkpoints change nothing, nor do their keys") {
  const workshop shop(eventful);
  const auto with = shop.run("with");
  const auto without = shop.run("without", {}, {{"checkpoint.every", "0"}});
  const auto paced = shop.run("paced", {}, {{"checkpoint.force", "false"}, {"checkpoint.keep", "1"}});
  CHECK(with.run_digest == without.run_digest);
  CHECK(with.run_digest == paced.run_digest);
  CHECK(with.scenario_digest == without.scenario_digest);
  CHECK(shop.checkpoints("without").empty());
  CHECK(shop.checkpoints("paced").size() == 1);
  CHECK(without.resume_from.empty());
}

TEST_CASE("every n rounds means every n rounds") {
  const workshop shop(eventful);
  shop.run("run", {}, {{"checkpoint.every", "4"}});
  CHECK(shop.checkpoints("run").size() == 2); // after rounds 4 and 8 of nine
}

TEST_CASE("a broken checkpoint is taken away and the one before is used") {
  const workshop shop(eventful);
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(shop.run("broken", {.trace = true, .events_max = 60}).status == "interrupted");
  const auto last = shop.checkpoints("broken").back();
  auto bytes = content_of(last);
  bytes[bytes.size() / 2] ^= 1;
  write_file(last, bytes);
  CHECK(shop.resume("broken").run_digest == whole.run_digest);
  check_equal_files(shop.path("whole"), shop.path("broken"));
}

TEST_CASE("without a whole checkpoint the run starts from the beginning") {
  const workshop shop(eventful);
  REQUIRE(shop.run("whole", {.trace = true}).status == "done");
  REQUIRE(shop.run("lost", {.trace = true, .events_max = 60}).status == "interrupted");
  for (const auto& file : shop.checkpoints("lost"))
    write_file(file, content_of(file).substr(0, 100));
  CHECK(shop.resume("lost").status == "done");
  check_equal_files(shop.path("whole"), shop.path("lost"));
  CHECK(shop.checkpoints("lost").size() == 8);
}

TEST_CASE("a run that is done is left alone") {
  const workshop shop(eventful);
  shop.run("run");
  const auto summary = content_of(shop.path("run") / "summary.json");
  const auto again = resume_simulation(shop.path("run"), {.style = progress_style::quiet});
  REQUIRE(again);
  CHECK_FALSE(*again);
  CHECK(content_of(shop.path("run") / "summary.json") == summary);
}

TEST_CASE("what cannot be resumed is refused with the reason, and nothing is changed") {
  const workshop shop(eventful);
  CHECK_THAT(shop.refusal("nowhere"), ContainsSubstring("no folder"));
  fs::create_directory(shop.path("empty"));
  CHECK_THAT(shop.refusal("empty"), ContainsSubstring("no scenario.toml"));
  REQUIRE(shop.run("run", {.events_max = 60}).status == "interrupted");
  const auto metrics = content_of(shop.path("run") / "metrics.jsonl");
  auto other = content_of(shop.path("run") / "scenario.toml");
  other.replace(other.find("seed = 3"), 8, "seed = 4");
  write_file(shop.path("run") / "scenario.toml", other);
  CHECK_THAT(shop.refusal("run"), ContainsSubstring("another scenario"));
  CHECK(content_of(shop.path("run") / "metrics.jsonl") == metrics);
  CHECK(fs::exists(shop.path("run") / "summary.json"));
}

TEST_CASE("two processes never write one run directory") {
  const workshop shop(eventful);
  REQUIRE(shop.run("run", {.events_max = 60}).status == "interrupted");
  const int other = ::open(shop.path("run").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(other, LOCK_EX | LOCK_NB) == 0);
  CHECK_THAT(shop.refusal("run"), ContainsSubstring("another process"));
  ::close(other);
  CHECK(shop.resume("run").status == "done");
}

TEST_CASE("a disk that is full during a checkpoint costs that checkpoint and nothing else") {
  const workshop shop(eventful);
  const auto whole = shop.run("whole");
  REQUIRE(shop.run("full", {.events_max = 60}).status == "interrupted");
  const auto before = shop.checkpoints("full");
  // what the next checkpoint writes goes to a device without space
  fs::create_symlink("/dev/full",
                     shop.path("full") / "checkpoint" /
                         (std::string("000000000") + std::to_string(before.size() + 1) + ".checkpoint.part"));
  const auto ended = shop.resume("full", {.events_max = 30});
  REQUIRE(ended.status == "interrupted");
  CHECK(shop.checkpoints("full").size() >= before.size());
  for (const auto& file : before)
    CHECK(fs::exists(file));
  CHECK(shop.resume("full").run_digest == whole.run_digest);
}
