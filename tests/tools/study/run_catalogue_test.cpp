#include "tests/support/run_folders.hpp"
#include "tools/study/run_catalogue.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Names of the folders that satisfy the filters.
std::vector<std::string> found(const run_catalogue& catalogue, const std::vector<std::string>& filters) {
  std::vector<run_filter> parsed;
  for (const auto& text : filters)
    parsed.push_back(*parse_filter(text));
  std::vector<std::string> names;
  for (const auto& run : catalogue.find(parsed))
    names.push_back(run.folder.filename().string());
  return names;
}

using names = std::vector<std::string>;

} // namespace

TEST_CASE("filters select by attributes, scenario keys and metrics") {
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
  CHECK_FALSE(parse_filter("seed"));
  CHECK_FALSE(parse_filter("=3"));
  CHECK_FALSE(parse_filter("seed!3"));
}

TEST_CASE("the catalogue returns the content of the run directories") {
  const scratch_folder here;
  write_run(here.path() / "a", {.strategy = "fedprox", .seed = 3, .forgetting = {}});
  const auto read = *read_stored_run(here.path() / "a");
  for (int time = 0; time < 2; ++time) { // created, then read
    const auto run = run_catalogue(here.path()).find({}).at(0);
    CHECK(run.folder == read.folder);
    CHECK((run.keys == read.keys));
    CHECK((run.figures == read.figures));
    CHECK(run.seed == 3);
    CHECK(run.scenario_digest == read.scenario_digest);
    CHECK(run.version == read.version);
  }
}

TEST_CASE("the catalogue is updated with its directories and rebuilt when it is damaged") {
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

TEST_CASE("a changed byte of the catalogue never changes the runs that it returns") {
  const scratch_folder here;
  for (const char* name : {"a", "b", "c"})
    write_run(here.path() / name, {.final_accuracy = 60.0 + name[0]});
  const auto file = here.path() / run_catalogue::file_name;
  const auto expected = run_catalogue(here.path()).find({});
  const auto whole = content_of(file);
  std::size_t noticed = 0;
  for (std::size_t byte = 0; byte < whole.size(); byte += 61) { // in every part of every page
    auto damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ 0x10);
    write_file(file, damaged);
    const run_catalogue catalogue(here.path());
    noticed += catalogue.damage().size();
    const auto runs = catalogue.find({});
    REQUIRE(runs.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(runs[i].folder == expected[i].folder);
      CHECK(runs[i].scenario_digest == expected[i].scenario_digest);
      CHECK(runs[i].status == "done");
      CHECK((runs[i].figures == expected[i].figures));
      CHECK((runs[i].keys == expected[i].keys));
    }
    CHECK(found(catalogue, {"final_accuracy>158"}) == names{"c"});
  }
  CHECK(noticed > 20);
}

TEST_CASE("a damaged catalogue is reported, an old or missing one is not") {
  const scratch_folder here;
  write_run(here.path() / "a", {});
  CHECK(run_catalogue(here.path()).damage().empty());
  write_file(here.path() / run_catalogue::file_name, "no database, but long enough to be taken for the head of one");
  const run_catalogue again(here.path());
  REQUIRE(again.damage().size() == 1);
  CHECK(again.damage()[0].text.find("it is rebuilt") != std::string::npos);
  CHECK(found(again, {}) == names{"a"});
  CHECK(run_catalogue(here.path()).damage().empty());
}

TEST_CASE("two concurrent catalogues of one folder have each run once") {
  const scratch_folder here;
  write_run(here.path() / "a", {});
  const run_catalogue first(here.path());
  write_run(here.path() / "b", {});
  const run_catalogue second(here.path());
  CHECK(found(first, {}) == names{"a", "b"});
  CHECK(found(second, {}) == names{"a", "b"});
}

TEST_CASE("a damaged run is listed as damaged") {
  const scratch_folder here;
  write_run(here.path() / "a", {});
  write_file(here.path() / "a" / "summary.json", "{");
  const auto runs = run_catalogue(here.path()).find({});
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].status == "damaged");
  CHECK(runs[0].error.starts_with("summary.json: is damaged")); // the folder is printed separately
}
