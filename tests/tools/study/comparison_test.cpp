#include "tests/support/run_folders.hpp"
#include "tools/study/comparison_text.hpp"
#include "tools/study/sweep_order.hpp"
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

/// fedavg with 50, 52, 57 and fedprox with 53, 56, 59 over seeds 1, 2, 3.
std::vector<stored_run> six_runs(const std::filesystem::path& in) {
  std::vector<stored_run> runs;
  for (const auto& run : std::vector<made_run>{{.strategy = "fedavg", .seed = 1, .final_accuracy = 50.0},
                                               {.strategy = "fedavg", .seed = 2, .final_accuracy = 52.0},
                                               {.strategy = "fedavg", .seed = 3, .final_accuracy = 57.0},
                                               {.strategy = "fedprox", .seed = 1, .final_accuracy = 53.0},
                                               {.strategy = "fedprox", .seed = 2, .final_accuracy = 51.0},
                                               {.strategy = "fedprox", .seed = 3, .final_accuracy = 64.0}}) {
    const auto folder = in / (run.strategy + std::to_string(run.seed));
    write_run(folder, run);
    runs.push_back(*read_stored_run(folder));
  }
  return runs;
}

bool has_message(const diagnostics& found, const std::string& where, const std::string& text) {
  return std::any_of(found.begin(), found.end(), [&](const diagnostic& problem) {
    return problem.where.find(where) != std::string::npos && problem.text.find(text) != std::string::npos;
  });
}

} // namespace

TEST_CASE("means, intervals, paired differences and ranks equal values worked out by hand") {
  const scratch_folder here;
  const auto table = compare_runs(six_runs(here.path()), {.metrics = {"final_accuracy"}});
  REQUIRE(table);
  CHECK(table->by == std::vector<std::string>{"strategy.name"});
  REQUIRE(table->rows.size() == 2);
  const auto &average = table->rows[0].cells[0], &proximal = table->rows[1].cells[0];
  CHECK(*average.statistics.mean == Approx(53.0));              // (50 + 52 + 57) / 3
  CHECK(*average.statistics.deviation == Approx(3.6055512755)); // sqrt((9 + 1 + 16) / 2)
  CHECK(*average.statistics.half_width == Approx(8.9566858950));
  CHECK(*proximal.statistics.mean == Approx(56.0));     // (53 + 51 + 64) / 3
  CHECK(*proximal.statistics.deviation == Approx(7.0)); // sqrt((9 + 25 + 64) / 2)
  // Differences 3, -1, 7: mean 3, deviation 4, half width 4.3026527 * 4 / sqrt(3).
  CHECK(*proximal.difference.mean == Approx(3.0));
  CHECK(*proximal.difference.deviation == Approx(4.0));
  CHECK(*proximal.difference.half_width == Approx(9.9365507));
  // fedprox is better with seeds 1 and 3.
  CHECK(*average.rank == Approx(5.0 / 3.0));
  CHECK(*proximal.rank == Approx(4.0 / 3.0));
}

TEST_CASE("a metric may be a time to an accuracy or the last accuracy on a task, and may be undefined") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  const auto table =
      compare_runs(runs, {.metrics = {"time_to_accuracy.80", "time_to_accuracy.90", "task_2", "forgetting"}});
  REQUIRE(table);
  const auto& cells = table->rows[0].cells;
  CHECK(*cells[0].statistics.mean == 10.0); // 80 % after the first task, at 10 s
  CHECK(cells[1].statistics.count == 0);
  CHECK_FALSE(cells[1].rank);
  CHECK(*cells[2].statistics.mean == Approx(58.0)); // 5 above the final accuracy
  CHECK(*cells[3].rank == 1.5);                     // equal forgetting
  CHECK(table->columns[3].less_is_better);
}

TEST_CASE("keys define rows and columns in numeric order") {
  const scratch_folder here;
  std::vector<stored_run> runs;
  for (const double rate : {0.5, 10.0, 2.0})
    for (const auto* strategy : {"fedprox", "fedavg"}) {
      const auto folder = here.path() / fmt::format("{}{}", strategy, rate);
      write_run(folder, {.strategy = strategy, .learning_rate = rate, .final_accuracy = rate});
      runs.push_back(*read_stored_run(folder));
    }
  const auto table = compare_runs(
      runs,
      {.by = {"training.learning_rate"}, .columns = "strategy.name", .metrics = {"final_accuracy"}, .baseline = "2"});
  REQUIRE(table);
  REQUIRE(table->rows.size() == 3);
  CHECK(table->rows[2].labels == std::vector<std::string>{"10"});
  CHECK(table->columns[0].value == "fedavg");
  CHECK(table->columns[1].value == "fedprox");
  CHECK(table->baseline == 1);
  CHECK(*table->rows[2].cells[1].difference.mean == 8.0);
  const auto found = compare_runs(runs, {}); // finds the distinguishing key itself
  REQUIRE(found);
  CHECK(found->by == std::vector<std::string>{"strategy.name", "training.learning_rate"});
}

TEST_CASE("runs that cannot be compared are all named") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  runs[0].status = "damaged"; // unknown version
  runs[0].version = "";
  runs[0].error = "scenario.toml: is damaged";
  runs[3].version = "0.0.9";
  runs[4].status = "damaged";
  runs[4].error = "summary.json: is damaged";
  const auto wrong = compare_runs(runs, {});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().size() == 3);
  CHECK(has_message(wrong.error(), "fedavg1", "scenario.toml: is damaged"));
  CHECK(has_message(wrong.error(), "fedprox1", "mixed: computed by mneme 0.0.9"));
  CHECK(has_message(wrong.error(), "fedprox2", "is damaged"));
}

TEST_CASE("a comparison of methods on different data has a warning") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  for (std::size_t at = 3; at < 6; ++at) { // those of fedprox
    runs[at].keys["data.name"] = "cifar100";
    runs[at].keys["training.learning_rate"] = "0.2";
  }
  const auto table = compare_runs(runs, {.metrics = {"final_accuracy"}});
  REQUIRE(table);
  REQUIRE(table->warnings.size() == 1);
  CHECK(has_message(table->warnings, "", "the rows also differ in data.name: their differences are not those of the"));
  CHECK(compare_runs(runs, {.by = {"strategy.name", "data.name"}, .metrics = {"final_accuracy"}})->warnings.empty());
}

TEST_CASE("runs that are not done are left out, each with its reason") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  runs[1].status = "interrupted";
  runs[4].status = "failed";
  runs[4].error = "client 3: NaN";
  runs[4].version = "0.0.9"; // irrelevant for runs that are not done
  const auto table = compare_runs(runs, {.metrics = {"final_accuracy"}});
  REQUIRE(table);
  CHECK(*table->rows[0].cells[0].statistics.mean == Approx(53.5)); // (50 + 57) / 2
  CHECK(table->rows[1].seeds == std::set<std::int64_t>{1, 3});
  REQUIRE(table->warnings.size() == 2);
  CHECK(has_message(table->warnings, "fedavg2", "left out: the run is interrupted; finish it with `mneme resume"));
  CHECK(has_message(table->warnings, "fedprox2", "left out: the run is failed (client 3: NaN); finish it with"));
  for (auto& run : runs)
    run.status = "interrupted";
  const auto none = compare_runs(runs, {});
  REQUIRE_FALSE(none);
  CHECK(none.error().size() == 7);
  CHECK(has_message(none.error(), "", "no run to compare: none is done"));
}

TEST_CASE("the first point of a sweep is the baseline unless another one is given") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  for (auto& run : runs)
    run.scenario_digest = run.strategy + std::to_string(run.seed);
  CHECK(compare_runs(runs, {})->baseline == 0);
  CHECK(compare_runs(runs, {.sweep_order = {"of another folder", "fedprox2", "fedavg1"}})->baseline == 1);
  CHECK(compare_runs(runs, {.baseline = "fedavg", .sweep_order = {"fedprox1"}})->baseline == 0);
  const sweep_plan plan{.runs = {{.digest = "fedprox1", .label = "a b=1"}, {.digest = "fedavg1", .label = "a b=2"}}};
  write_sweep_order(here.path(), plan);
  CHECK(read_sweep_order(here.path()) == std::vector<std::string>{"fedprox1", "fedavg1"});
  write_file(here.path() / "sweep.json", "{\"runs\": 3");
  CHECK(read_sweep_order(here.path()).empty());
  CHECK(read_sweep_order(here.path() / "none").empty());
}

TEST_CASE("bytes have the unit of the largest mean in text, and full precision in CSV") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  for (auto& run : runs)
    run.figures["upload_bytes"] = run.strategy == "fedavg" ? 512.0 * 1024 : 3.0 * 1024 * 1024;
  const auto table = *compare_runs(runs, {.metrics = {"upload_bytes"}});
  const auto text = comparison_text(table, comparison_format::text);
  CHECK(text.find("upload_bytes (MiB)\n  fedavg             3   0.50 ± 0.00 [0.50, 0.50]\n") != std::string::npos);
  CHECK(text.find("+2.50 [2.50, 2.50]") != std::string::npos);
  CHECK(text.find("  strategy.name   upload_bytes\n") != std::string::npos); // ranks have no unit
  CHECK(comparison_text(table, comparison_format::csv).find("fedavg,upload_bytes,3,524288,0,") != std::string::npos);
}

TEST_CASE("runs of one cell may differ only in the seed") {
  const scratch_folder here;
  auto runs = six_runs(here.path());
  const auto mixed = compare_runs(runs, {.by = {"data.name"}});
  REQUIRE_FALSE(mixed);
  CHECK(has_message(mixed.error(), "fedavg1", "differ in strategy.name and not only in the seed"));
  runs[1].seed = 1;
  const auto twice = compare_runs(runs, {});
  REQUIRE_FALSE(twice);
  CHECK(has_message(twice.error(), "fedavg2", "the same scenario with the same seed 1"));
  const auto unknown = compare_runs(six_runs(here.path()), {.by = {"strategy.nam"}, .metrics = {"final_acuracy"}});
  REQUIRE_FALSE(unknown);
  CHECK(has_message(unknown.error(), "", "no run has the scenario key 'strategy.nam'; did you mean 'strategy.name'?"));
  CHECK(has_message(unknown.error(), "", "no run has the metric 'final_acuracy'; did you mean 'final_accuracy'?"));
  for (const std::string task : {"task_0", "task_1.5", "task_99"}) {
    const auto no_task = compare_runs(six_runs(here.path()), {.metrics = {task}});
    REQUIRE_FALSE(no_task);
    CHECK(has_message(no_task.error(), "", "no run has the metric '" + task + "'"));
  }
  CHECK(unknown.error().size() == 2);
  CHECK_FALSE(compare_runs({}, {}));
}

TEST_CASE("the table is formatted for a terminal, a spreadsheet, a page and a paper") {
  const scratch_folder here;
  const auto table = *compare_runs(six_runs(here.path()), {.metrics = {"final_accuracy"}});
  CHECK(comparison_text(table, comparison_format::text) == "mean ± sample deviation over seeds [95 % interval]\n"
                                                           "  strategy.name   runs                final_accuracy\n"
                                                           "  fedavg             3   53.00 ± 3.61 [44.04, 61.96]\n"
                                                           "  fedprox            3   56.00 ± 7.00 [38.61, 73.39]\n"
                                                           "\n"
                                                           "difference to (fedavg), paired by seed [95 % interval]\n"
                                                           "  strategy.name         final_accuracy\n"
                                                           "  fedavg                             -\n"
                                                           "  fedprox         +3.00 [-6.94, 12.94]\n"
                                                           "\n"
                                                           "mean rank over seeds, 1 is the best\n"
                                                           "  strategy.name   final_accuracy\n"
                                                           "  fedavg                    1.67\n"
                                                           "  fedprox                   1.33\n");
  const auto csv = comparison_text(table, comparison_format::csv);
  CHECK(csv.find("strategy.name,metric,runs,mean,deviation,low,high,difference,difference_runs,difference_low,"
                 "difference_high,rank\nfedavg,final_accuracy,3,53,3.605551275463989,44.043") == 0);
  const auto markdown = comparison_text(table, comparison_format::markdown);
  CHECK(markdown.find("| strategy.name | runs | final_accuracy |\n|---|---:|---:|\n"
                      "| fedavg | 3 | 53.00 ± 3.61 [44.04, 61.96] |\n") != std::string::npos);
  const auto latex = comparison_text(table, comparison_format::latex);
  CHECK(latex.find("fedprox & 3 & 56.00 $\\pm$ 7.00 [38.61, 73.39] \\\\\n") != std::string::npos);
  CHECK(latex.find("final\\_accuracy") != std::string::npos);
  const auto html = comparison_text(table, comparison_format::html);
  CHECK(html.find("<table><caption>mean ± sample deviation over seeds [95 % interval]</caption>\n<thead><tr><th "
                  "scope=\"col\">strategy.name</th><th scope=\"col\" class=\"number\">runs</th>") != std::string::npos);
  CHECK(html.find("<tr><th scope=\"row\">fedprox</th><td class=\"number\">3</td><td class=\"number\">56.00 ± 7.00 "
                  "[38.61, 73.39]</td></tr>\n") != std::string::npos);
}
