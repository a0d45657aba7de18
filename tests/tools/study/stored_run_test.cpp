#include "tests/support/run_folders.hpp"
#include "tools/study/stored_run.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

bool has_error(const diagnostics& found, const std::string& where, const std::string& text) {
  return found.size() == 1 && found[0].where.find(where) != std::string::npos &&
         found[0].text.find(text) != std::string::npos;
}

} // namespace

TEST_CASE("a run directory is read with its scenario keys and summary metrics") {
  const scratch_folder here;
  write_run(here.path() / "a", {.strategy = "fedprox", .seed = 3, .learning_rate = 0.25, .final_accuracy = 61.5});
  const auto run = read_stored_run(here.path() / "a");
  REQUIRE(run);
  CHECK(run->status == "done");
  CHECK(run->seed == 3);
  CHECK(run->keys.at("training.learning_rate") == "0.25");
  CHECK(run->keys.at("strategy.name") == "fedprox");
  CHECK(run->figures.at("final_accuracy") == 61.5);
  CHECK(run->figures.at("backward_transfer") == std::nullopt);
  CHECK(run->version == MNEME_VERSION);
  CHECK(*run_value(*run, "scenario") == "made");
  CHECK(*run_value(*run, "rounds.cohort") == "5");
  CHECK(run_value(*run, "rounds.chort") == nullptr);
}

TEST_CASE("evaluations are read back with the ends of tasks") {
  const scratch_folder here;
  write_run(here.path() / "a", {.final_accuracy = 40.0});
  const auto lines = read_evaluations(here.path() / "a");
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK((*lines)[0].accuracy == 80.0);
  CHECK((*lines)[0].end_of_task);
  CHECK((*lines)[1].task == task_id{1});
  CHECK((*lines)[1].round == round_id{3});
  CHECK((*lines)[1].at == virtual_time(std::chrono::seconds(30)));
  CHECK((*lines)[1].accuracy_per_task == std::vector<double>{35.0, 45.0});
  write_file(here.path() / "a" / "metrics.jsonl", json_text(evaluation_after(0, {80.0}, 80.0, 10)) + "\n{\"task\": 1");
  const auto torn = read_evaluations(here.path() / "a");
  REQUIRE_FALSE(torn);
  CHECK(has_error(torn.error(), "metrics.jsonl:2", "is damaged"));
}

TEST_CASE("accuracies of classes are read if a run has them") {
  const scratch_folder here;
  CHECK(read_class_accuracies(here.path())->empty()); // run of an earlier version
  const auto file = here.path() / "accuracy_per_class.csv";
  write_file(file, "after_task,class,name,rows,accuracy\n1,0,T-shirt,10,90.5\n2,7,\"a, b\",4,25\n");
  const auto lines = read_class_accuracies(here.path());
  REQUIRE(lines);
  REQUIRE(lines->size() == 2);
  CHECK((*lines)[0].task == task_id{0});
  CHECK((*lines)[0].name == "T-shirt");
  CHECK((*lines)[0].accuracy == 90.5);
  CHECK((*lines)[1].label == 7);
  CHECK((*lines)[1].name == "a, b");
  for (const char* line : {"0,0,,10,90", "1,0,,10", "1,0,,10,much"}) {
    write_file(file, std::string("after_task,class,name,rows,accuracy\n1,1,,10,90\n") + line + "\n");
    const auto torn = read_class_accuracies(here.path());
    REQUIRE_FALSE(torn);
    CHECK(has_error(torn.error(), "accuracy_per_class.csv:3", "is damaged"));
  }
}

TEST_CASE("damaged directories are named with the damaged file") {
  const scratch_folder here;
  const auto folder = here.path() / "a";
  const auto refused = [&](const std::string& where, const std::string& text) {
    const auto read = read_stored_run(folder);
    REQUIRE_FALSE(read);
    CAPTURE(read.error().front().where, read.error().front().text);
    CHECK(has_error(read.error(), where, text));
  };
  refused("a", "is not a folder");
  std::filesystem::create_directory(folder);
  refused("scenario.toml", "is missing");
  write_run(folder, {});
  write_file(folder / "summary.json", "{\"status\": \"do");
  refused("summary.json", "expected one JSON object");
  write_file(folder / "summary.json", "{\"status\": \"done\"}");
  refused("summary.json", "it has no '");
  write_run(folder, {});
  write_file(folder / "scenario.toml", "seed = \n");
  refused("scenario.toml:1", "the run directory is damaged");
}

TEST_CASE("files of different runs in one folder are detected") {
  const scratch_folder here;
  write_run(here.path() / "a", {.strategy = "fedprox"});
  write_run(here.path() / "b", {.strategy = "fedavg"});
  std::filesystem::copy_file(here.path() / "a" / "summary.json", here.path() / "b" / "summary.json",
                             std::filesystem::copy_options::overwrite_existing);
  const auto read = read_stored_run(here.path() / "b");
  REQUIRE_FALSE(read);
  CHECK(has_error(read.error(), "b",
                  "mixed: summary.json is of a run with strategy = fedprox, but scenario.toml has fedavg"));
}

TEST_CASE("a run without a summary is unfinished and still names its scenario") {
  const scratch_folder here;
  write_run(here.path() / "a", {.seed = 4, .status = "unfinished", .digest = "0123456789abcdef0123456789abcdef"});
  const auto run = read_stored_run(here.path() / "a");
  REQUIRE(run);
  CHECK(run->status == "unfinished");
  CHECK(run->scenario_digest == "0123456789abcdef0123456789abcdef");
  CHECK(run->version == MNEME_VERSION);
  CHECK(run->seed == 4);
}

TEST_CASE("runs are found below a folder, but not inside run directories") {
  const scratch_folder here;
  write_run(here.path() / "both" / "s2", {});
  write_run(here.path() / "both" / "s1", {});
  write_run(here.path() / "c", {});
  std::filesystem::create_directories(here.path() / "empty");
  const auto found = run_folders_in(here.path());
  REQUIRE(found.size() == 3);
  CHECK(found[0] == here.path() / "both" / "s1");
  CHECK(found[1] == here.path() / "both" / "s2");
  CHECK(found[2] == here.path() / "c");
}
