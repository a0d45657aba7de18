// Measurements and saved models of a run: training losses, predictions under class masks, accuracies by class, and
// models with which other runs begin.
#include "runtime/storage/parameters.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <ctime>
#include <nlohmann/json.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using nlohmann::json;

namespace {

/// Four classes in two tasks, and a linear net with nearly constant weights, which computes the same given scores for
/// every row.
struct fixed_scores {
  explicit fixed_scores(const std::vector<float>& scores) {
    tensor_map weights;
    weights.put("fc.weight", at::zeros({4, 16}));
    weights.put("fc.bias", at::tensor(scores, at::kFloat));
    const auto bytes = safetensors_bytes(weights);
    write_file(file(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  [[nodiscard]] fs::path file() const { return folder.path() / "scores.safetensors"; }
  [[nodiscard]] scenario_text scenario() const {
    return small_scenario({{"model.name", "linear"},
                           {"model.seed_weights", file().string()},
                           {"training.learning_rate", 1e-12},
                           {"training.batch", 0},
                           {"rounds.per_task", 1}})
        .without("model.hidden");
  }
  scratch_folder folder{};
};

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(json::parse(line));
  return lines;
}

/// Accuracies on tasks 1 and 2 at each evaluation.
std::vector<std::vector<double>> accuracies(const finished_run& run) {
  std::vector<std::vector<double>> rows;
  for (const auto& line : lines_of(run.metrics))
    rows.push_back(line["accuracy_per_task"]);
  return rows;
}

finished_run masked(const fixed_scores& net, const char* mask) {
  return run_toml(net.scenario().with({{"evaluation.mask", mask}}));
}

} // namespace

TEST_CASE("the training loss is that of the round's clients under the received weights", "[evaluation]") {
  const fixed_scores net({0, 0, 0, 0}); // all classes are equally likely
  const auto lines = lines_of(run_toml(net.scenario()).metrics);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0]["training_loss"].get<double>(), WithinAbs(std::log(2.0), 1e-6)); // over the seen classes
  CHECK_THAT(lines[1]["training_loss"].get<double>(), WithinAbs(std::log(4.0), 1e-6));
  CHECK(lines[1]["training_loss_terms"] == json{{"cross_entropy", lines[1]["training_loss"]}});
  const auto proximal = lines_of(run_toml(net.scenario().with({{"strategy.name", "fedprox"}})).metrics);
  CHECK_THAT(proximal[0]["training_loss_terms"]["cross_entropy"].get<double>(), WithinAbs(std::log(2.0), 1e-6));
  CHECK(proximal[0]["training_loss_terms"]["proximal"] == 0.0); // a single step starts at the received weights
}

TEST_CASE("terms of a training loss add up to it, for each kind of loss", "[evaluation]") {
  // Number of loss terms of each method once all of them are active.
  const std::vector<std::pair<std::string, std::size_t>> term_counts{
      {"fedprox", 2}, {"fed-lwf", 2}, {"fed-ewc", 2}, {"fed-dyn", 3}, {"fed-et", 3}, {"glfc", 2}, {"finetune", 1}};
  for (const auto& [method, terms] : term_counts) {
    const auto run = run_toml(small_scenario({{"strategy.name", method}, {"training.epochs", 2}}));
    std::size_t terms_max = 0;
    for (const auto& line : lines_of(run.metrics)) {
      INFO(method << ": " << line.dump());
      double sum = 0.0;
      for (const auto& [name, value] : line["training_loss_terms"].items())
        sum += value.get<double>();
      const auto whole = line["training_loss"].get<double>();
      CHECK_THAT(sum, WithinAbs(whole, 1e-9 * std::max(1.0, std::abs(whole))));
      terms_max = std::max(terms_max, line["training_loss_terms"].size());
    }
    INFO(method);
    CHECK(terms_max == terms);
  }
}

TEST_CASE("predictions are among the seen classes, all classes, or the classes of the row's task", "[evaluation]") {
  const fixed_scores net({0, 1, 0, 2}); // class 3 wins if it is allowed, else class 1
  const auto seen = masked(net, "seen"), all = masked(net, "all"), task = masked(net, "task");
  const auto task_rows = accuracies(task);
  REQUIRE(task_rows.size() == 2);
  const double first = task_rows[0][0], last = task_rows[1][1]; // share of class 1 in task 1, of class 3 in task 2
  CHECK((30.0 < first && first < 70.0 && 30.0 < last && last < 70.0));
  CHECK(task_rows == std::vector<std::vector<double>>{{first}, {first, last}});
  CHECK(accuracies(seen) == std::vector<std::vector<double>>{{first}, {0.0, last}});
  CHECK(accuracies(all) == std::vector<std::vector<double>>{{0.0}, {0.0, last}});
  CHECK(task.summary.run_digest != seen.summary.run_digest);
}

TEST_CASE("all class masks agree if the tasks have the same classes", "[evaluation]") {
  const auto domains = small_scenario({{"tasks.kind", "domain-incremental"}, {"tasks.transform", "permute"}});
  const auto seen = run_toml(domains), task = run_toml(domains.with({{"evaluation.mask", "task"}}));
  CHECK(task.summary.status == "done");
  CHECK(task.metrics == seen.metrics);
  CHECK(task.summary.run_digest == seen.summary.run_digest);
}

TEST_CASE("accuracies by class are written after each task under the data set's class names", "[evaluation]") {
  const fixed_scores net({0, 1, 0, 2});
  const workshop shop(
      net.scenario().with({{"evaluation.mask", "task"}, {"tasks.class_order", raw_toml("[2, 0, 3, 1]")}}));
  REQUIRE(shop.run("run").status == "done");
  std::istringstream csv(content_of(shop.path("run") / "accuracy_per_class.csv"));
  std::vector<std::string> classes; // without the number of rows
  for (std::string line; std::getline(csv, line);) {
    const auto name_end = line.find(',', line.find(',', line.find(',') + 1) + 1);
    classes.push_back(line.substr(0, name_end) + line.substr(line.find(',', name_end + 1)));
  }
  CHECK(classes == std::vector<std::string>{"after_task,class,name,accuracy", "1,0,2,0", "1,1,0,100", "2,0,2,0",
                                            "2,1,0,100", "2,2,3,0", "2,3,1,100"});
}

TEST_CASE("models saved after each task can start another run", "[evaluation]") {
  const auto scenario = small_scenario({{"training.epochs", 3}});
  const workshop shop(scenario.with({{"evaluation.models", "tasks"}}));
  const auto whole = shop.run("run");
  const auto first = shop.path("run") / "models" / "task_1.safetensors";
  const auto last = content_of(shop.path("run") / "models" / "task_2.safetensors");
  CHECK(last == content_of(shop.path("run") / "model.safetensors"));
  CHECK(content_of(first) != last);
  CHECK_FALSE(fs::exists(shop.path("run") / "models" / "task_3.safetensors"));

  // Without further learning, the accuracy after task 1 is that of the loaded model.
  const auto still =
      run_toml(scenario.with({{"model.seed_weights", first.string()}, {"training.epochs", 0}, {"rounds.per_task", 1}}));
  const auto lines = lines_of(content_of(shop.path("run") / "metrics.jsonl"));
  CHECK(lines_of(still.metrics)[0]["accuracy"] == lines[1]["accuracy"]);
  CHECK(lines_of(still.metrics)[0]["training_loss"].is_null());

  const workshop plain(scenario);
  CHECK(plain.run("run").run_digest == whole.run_digest);
  CHECK_FALSE(fs::exists(plain.path("run") / "models"));
}

TEST_CASE("a run of any method can start from the model of another method", "[evaluation]") {
  const auto split = small_scenario({{"strategy.name", "split-fedavg"},
                                     {"model.weights", "as-drawn"},
                                     {"strategy.adjustment_hidden", raw_toml("[8]")},
                                     {"strategy.adjustment_width", 6},
                                     {"strategy.head_width", 5}});
  const auto ridge = small_scenario({{"strategy.name", "stsa"}, {"strategy.projection_width", 20}});
  const auto replay = small_scenario({{"strategy.name", "fed-cil"},
                                      {"model.weights", "as-drawn"},
                                      {"strategy.local_steps", 3},
                                      {"strategy.latent", 4}});
  for (const auto& scenario : {split, ridge, replay}) {
    const workshop shop(scenario);
    INFO(scenario.text());
    const auto before = shop.run("run");
    REQUIRE(before.status == "done");
    const auto model = shop.path("run") / "model.safetensors";
    const auto next = run_toml(scenario.with({{"model.seed_weights", model.string()}, {"training.epochs", 0}}));
    CHECK(next.summary.status == "done");
    if (scenario.text() == split.text()) // nothing was trained: all tensors are unchanged, including the head
      CHECK(next.model == content_of(model));
    else
      CHECK(next.summary.run_digest != before.run_digest);
  }
  const workshop shop(split);
  REQUIRE(shop.run("run").status == "done");
  const auto file = (shop.path("run") / "model.safetensors").string();
  CHECK_THAT(refusal_of(split.with({{"model.seed_weights", file}, {"strategy.head_width", 7}})),
             ContainsSubstring("tensor 'head.fc1.weight' has shape [5, 6], but the model needs [7, 6]"));
  CHECK_THAT(refusal_of(small_scenario({{"model.seed_weights", file}})),
             ContainsSubstring("belongs to no parameter of the model"));
}

TEST_CASE("CPU seconds of a run start at the end of the previous run", "[evaluation]") {
  (void)run_toml(small_scenario({}));
  const auto began = std::clock();
  while (std::clock() - began < CLOCKS_PER_SEC / 20) // work before a run, such as loading
    ;
  CHECK(run_toml(small_scenario({})).summary.cpu_seconds >= 0.05);
}
