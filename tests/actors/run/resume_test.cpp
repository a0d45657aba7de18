// A run that resumes from a checkpoint has the digest and files of an uninterrupted run.
#include "tests/support/interrupted_runs.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <sys/file.h>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Every due checkpoint is written and kept.
scenario_text checkpointed(const scenario_text& scenario) {
  return scenario.with({{"checkpoint.force", true}, {"checkpoint.keep", 1000}});
}
const auto eventful = checkpointed(eventful_scenario());
/// Two trainings per round at the end of a task, and training between tasks.
const auto ewc = eventful.with({{"strategy.name", "fed-ewc"}});
/// Clients that share a teacher, and models saved after each task.
const auto lwf = eventful.with({{"strategy.name", "fed-lwf"}, {"evaluation.models", "tasks"}});
const auto stsa = eventful.with({{"strategy.name", "stsa"},
                                 {"strategy.adaptation_rounds", 2},
                                 {"strategy.projection_width", 20},
                                 {"strategy.ridge", 1.0}});
const auto stsa_estimated = stsa.with({{"strategy.estimator", "estimated"}, {"strategy.dummies", 3}});

/// Asynchronous run.
const auto restless = checkpointed(restless_scenario())
                          .with({{"clients.count", 40},
                                 {"rounds.mode", "async"},
                                 {"rounds.per_task", 8},
                                 {"evaluation.every", 3},
                                 {"evaluation.targets", raw_toml("[30, 100]")},
                                 {"evaluation.fairness", true}});

} // namespace

TEST_CASE("a run resumes from each of its checkpoints with an equal digest") {
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
    fs::remove(shop.path(name) / "summary.json"); // state after a crash, with files that have grown since
    const auto again = shop.resume(name);
    CHECK(again.run_digest == whole.run_digest);
    CHECK(again.trace_digest == whole.trace_digest);
    check_equal_files(shop.path("whole"), shop.path(name));
  }
}

TEST_CASE("a run interrupted at any event resumes with an equal digest") {
  for (const auto& scenario : {eventful, ewc, lwf, stsa, stsa_estimated}) {
    INFO(scenario.text());
    const workshop shop(scenario);
    const auto whole = shop.run("whole", {.trace = true});
    REQUIRE(whole.status == "done");
    // "abandoned" and "stop" are events of the interrupted run, which resuming removes.
    CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 13}, workers::others) > 5);
    check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  }
}

TEST_CASE("an asynchronous run interrupted at any event resumes with an equal digest") {
  const workshop shop(restless);
  REQUIRE(shop.run("whole", {.trace = true}).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 29}, workers::others) > 5);
  check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  CHECK(run_in_pieces(shop, "again", {.trace = true, .events_max = 41, .stored_results_max = {0}}, workers::alike) > 3);
  check_equal_files(shop.path("whole"), shop.path("again"));
}

TEST_CASE("a FedAsync run interrupted at any event resumes with an equal digest") {
  const workshop shop(restless);
  const overrides every_upload{{"rounds.aggregation", "fedasync"}, {"rounds.per_task", "30"}};
  REQUIRE(shop.run("whole", {.trace = true}, every_upload).status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 37}, workers::alike, every_upload) > 3);
  check_equal_files(shop.path("whole"), shop.path("pieces"));
}

TEST_CASE("a run without memory for results ahead resumes from any event with an equal digest") {
  const workshop shop(restless);
  const overrides narrow{{"worker.lookahead_memory", "3 KiB"}};
  const auto whole = shop.run("whole", {.trace = true});
  REQUIRE(whole.status == "done");
  CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 31}, workers::others, narrow) > 5);
  for (const auto* name : {"metrics.jsonl", "events.csv", "model.safetensors"})
    CHECK(content_of(shop.path("whole") / name) == content_of(shop.path("pieces") / name));
  CHECK(content_of(shop.path("pieces") / "summary.json").find(whole.run_digest) != std::string::npos);
}

TEST_CASE("results computed ahead are recomputed if the checkpoint does not contain them") {
  for (const auto& scenario : {eventful, ewc}) {
    INFO(scenario.text());
    const workshop shop(scenario);
    REQUIRE(shop.run("whole", {.trace = true}).status == "done");
    CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 17, .stored_results_max = {0}}, workers::alike) >
          3);
    check_equal_files(shop.path("whole"), shop.path("pieces"));
  }
}

TEST_CASE("checkpoints and their keys leave the digest unchanged") {
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

TEST_CASE("checkpoint.every = n writes a checkpoint every n rounds") {
  const workshop shop(eventful);
  shop.run("run", {}, {{"checkpoint.every", "4"}});
  CHECK(shop.checkpoints("run").size() == 2); // after rounds 4 and 8 of nine
}

TEST_CASE("a damaged checkpoint is removed and the previous one is used") {
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

TEST_CASE("a run without an intact checkpoint resumes from the beginning") {
  const workshop shop(eventful);
  REQUIRE(shop.run("whole", {.trace = true}).status == "done");
  REQUIRE(shop.run("lost", {.trace = true, .events_max = 60}).status == "interrupted");
  for (const auto& file : shop.checkpoints("lost"))
    write_file(file, content_of(file).substr(0, 100));
  CHECK(shop.resume("lost").status == "done");
  check_equal_files(shop.path("whole"), shop.path("lost"));
  CHECK(shop.checkpoints("lost").size() == 8);
}

TEST_CASE("resuming a finished run does nothing") {
  const workshop shop(eventful);
  shop.run("run");
  const auto summary = content_of(shop.path("run") / "summary.json");
  const auto again = resume_simulation(shop.path("run"), {.style = progress_style::quiet});
  REQUIRE(again);
  CHECK_FALSE(*again);
  CHECK(content_of(shop.path("run") / "summary.json") == summary);
}

TEST_CASE("a run that cannot be resumed is rejected with the reason and stays unchanged") {
  const workshop shop(eventful);
  CHECK_THAT(shop.refusal("nowhere"), ContainsSubstring("is not a folder"));
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

TEST_CASE("two processes cannot write the same run directory") {
  const workshop shop(eventful);
  REQUIRE(shop.run("run", {.events_max = 60}).status == "interrupted");
  const int other = ::open(shop.path("run").c_str(), O_RDONLY | O_DIRECTORY);
  REQUIRE(::flock(other, LOCK_EX | LOCK_NB) == 0);
  CHECK_THAT(shop.refusal("run"), ContainsSubstring("another process"));
  ::close(other);
  CHECK(shop.resume("run").status == "done");
}

TEST_CASE("a full disk during a checkpoint loses only that checkpoint") {
  const workshop shop(eventful);
  const auto whole = shop.run("whole");
  REQUIRE(shop.run("full", {.events_max = 60}).status == "interrupted");
  const auto before = shop.checkpoints("full");
  // The next checkpoint is written to a device without space.
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
