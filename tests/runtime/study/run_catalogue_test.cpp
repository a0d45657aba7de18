#include "runtime/study/run_catalogue.hpp"
#include "tests/support/run_folders.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// The names of the folders for which the filters hold.
std::vector<std::string> found(const run_catalogue& catalogue, const std::vector<std::string>& filters) {
  std::vector<run_filter> parsed;
  for (const auto& text : filters)
    parsed.push_back(*parsed_filter(text));
  std::vector<std::string> names;
  for (const auto& run : catalogue.find(parsed))
    names.push_back(run.folder.filename().string());
  return names;
}

using names = std::vector<std::string>;

} // namespace

TEST_CASE("filters choose among attributes, scenario keys and figures") {
  const scratch_folder here;
  write_run(here.path() / "a", {.strategy = "fedavg", .seed = 1, .learning_rate = 0.1, .final_accuracy = 40.0});
  write_run(here.path() / "b", {.strategy = "fedprox", .seed = 10, .learning_rate = 0.5, .final_accuracy = 70.0});
  write_run(here.path() / "c", {.seed = 2, .final_accuracy = 60.0, .forgetting = {}, .status = "interrupted"});
  const run_catalogue catalogue(here.path());
  CHECK(found(catalogue, {}) == names{"a", "b", "c"});
  CHECK(found(catalogue, {"status=done"}) == names{"a", "b"});
  CHECK(found(catalogue, {"status!=done"}) == names{"c"});
  CHECK(found(catalogue, {"seed>=2"}) == names{"b", "c"});
  CHECK(found(catalogue, {"training.learning_rate=0.10"}) == names{"a", "c"});
  CHECK(found(catalogue, {"final_accuracy>40", "strategy.name=fedprox"}) == names{"b"});
  CHECK(found(catalogue, {"forgetting<=10"}) == names{"a", "b"});
  CHECK(found(catalogue, {"final_accuracy<60"}) == names{"a"});
  CHECK_FALSE(parsed_filter("seed"));
  CHECK_FALSE(parsed_filter("=3"));
  CHECK_FALSE(parsed_filter("seed!3"));
}

TEST_CASE("the catalogue gives back what the directories say") {
  const scratch_folder here;
  write_run(here.path() / "a", {.strategy = "fedprox", .seed = 3, .forgetting = {}});
  const auto read = *read_stored_run(here.path() / "a");
  for (int time = 0; time < 2; ++time) { // made, then read
    const auto run = run_catalogue(here.path()).find({}).at(0);
    CHECK(run.folder == read.folder);
    CHECK((run.keys == read.keys));
    CHECK((run.figures == read.figures));
    CHECK(run.seed == 3);
    CHECK(run.scenario_digest == read.scenario_digest);
    CHECK(run.version == read.version);
  }
}

TEST_CASE("the catalogue follows its directories, and is made again when it is damaged") {
  const scratch_folder here;
  write_run(here.path() / "a", {.status = "unfinished"});
  write_run(here.path() / "b", {});
  CHECK(found(run_catalogue(here.path()), {"status=unfinished"}) == names{"a"});
  write_run(here.path() / "a", {.final_accuracy = 77.0});
  std::filesystem::remove_all(here.path() / "b");
  write_run(here.path() / "c", {});
  CHECK(found(run_catalogue(here.path()), {}) == names{"a", "c"});
  CHECK(found(run_catalogue(here.path()), {"final_accuracy=77"}) == names{"a"});
  write_file(here.path() / run_catalogue::file_name, "no database, but long enough to be taken for the head of one");
  CHECK(found(run_catalogue(here.path()), {"final_accuracy=77"}) == names{"a"});
  std::filesystem::remove(here.path() / run_catalogue::file_name);
  CHECK(found(run_catalogue(here.path()), {"final_accuracy=77"}) == names{"a"});
}

TEST_CASE("a damaged run is listed as such") {
  const scratch_folder here;
  write_run(here.path() / "a", {});
  write_file(here.path() / "a" / "summary.json", "{");
  const auto runs = run_catalogue(here.path()).find({});
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].status == "damaged");
  CHECK(runs[0].error.starts_with("summary.json: is damaged")); // the folder is beside it
}
