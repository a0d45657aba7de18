// Runs with a preliminary backbone training on classes that the tasks do not use, and methods that train on its
// features.
#include "runtime/storage/parameters.hpp"
#include "tests/support/interrupted_runs.hpp"
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Ten classes: six train the backbone, the others form two tasks.
scenario_text trained_scenario() {
  return made_scenario({{"seed", 2},
                        {"data.shape", raw_toml("[16]")},
                        {"data.classes", 10},
                        {"data.rows", 600},
                        {"tasks.kind", "single"},
                        {"tasks.classes", 6},
                        {"clients.count", 1},
                        {"rounds.per_task", 1},
                        {"model.name", "mlp"},
                        {"model.hidden", raw_toml("[12, 9]")},
                        {"training.epochs", 3}});
}
scenario_text learning_scenario(const std::string& method) {
  return trained_scenario().with({{"tasks.kind", "class-incremental"},
                                  {"tasks.count", 2},
                                  {"tasks.classes", 4},
                                  {"tasks.class_order", raw_toml("[6, 7, 8, 9, 0, 1, 2, 3, 4, 5]")},
                                  {"clients.count", 8},
                                  {"rounds.per_task", 2},
                                  {"rounds.cohort", 5},
                                  {"partition.kind", "dirichlet"},
                                  {"partition.beta", 0.5},
                                  {"training.batch", 16},
                                  {"strategy.name", method}});
}
scenario_text split_scenario(const std::string& method) {
  return learning_scenario(method).with({{"model.weights", "as-drawn"},
                                         {"strategy.adjustment_hidden", raw_toml("[10, 10]")},
                                         {"strategy.adjustment_width", 8},
                                         {"strategy.head_width", 6}});
}

/// Sets $MNEME_CACHE to a temporary folder during its lifetime.
struct own_cache {
  scratch_folder folder;
  own_cache() { ::setenv("MNEME_CACHE", folder.path().c_str(), 1); }
  ~own_cache() { ::unsetenv("MNEME_CACHE"); }
  [[nodiscard]] std::vector<fs::path> nets() const {
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(folder.path() / "backbones"))
      if (entry.path().extension() == ".safetensors")
        entries.push_back(entry.path());
    return entries;
  }
};

/// A scenario and its backbone scenario.
struct two_scenarios {
  scratch_folder folder;
  two_scenarios(const scenario_text& trained, const scenario_text& learning) {
    write_file(folder.path() / "backbone.toml", trained.text());
    write_file(folder.path() / "test.toml",
               learning.without("model.weights").with({{"model.backbone", "backbone.toml"}}).text());
  }
  [[nodiscard]] scenario read() const { return read_scenario(folder.path() / "test.toml", {}).value().value; }
  [[nodiscard]] run_summary run(const std::string& name) const {
    auto ended = run_simulation(read(), {.out = folder.path() / name, .threads = 1, .style = progress_style::quiet});
    if (!ended)
      FAIL(diagnostic_text(ended.error().front()));
    return *ended;
  }
  [[nodiscard]] std::string refusal() const {
    std::string text;
    for (const auto& finding : check_against_data(read()))
      text += diagnostic_text(finding) + "\n";
    return text;
  }
};

} // namespace

TEST_CASE("a backbone is trained once, cached by digest, and gives the run's initial weights") {
  const own_cache cache;
  const two_scenarios files(trained_scenario(), split_scenario("fedhaf"));
  const auto first = files.run("first");
  REQUIRE(first.status == "done");
  REQUIRE(cache.nets().size() == 1);
  const auto written = fs::last_write_time(cache.nets().front());
  const auto trained = run_toml(trained_scenario(), {.threads = 1});
  const auto kept = read_safetensors(cache.nets().front());
  REQUIRE(kept);
  const auto bytes = safetensors_bytes(*kept);
  CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == trained.model);
  CHECK(files.run("again").run_digest == first.run_digest);
  CHECK(fs::last_write_time(cache.nets().front()) == written);

  const two_scenarios others(trained_scenario().with({{"training.epochs", 1}}), split_scenario("fedhaf"));
  CHECK(scenario_digest(others.read()) != scenario_digest(files.read()));
  CHECK(others.run("other").run_digest != first.run_digest);
  CHECK(cache.nets().size() == 2);
}

TEST_CASE("a run may add adapters to a backbone without adapters but may not remove them") {
  const own_cache cache;
  const auto with_vit = [](const scenario_text& scenario, std::int64_t adapter) {
    return scenario.without("model.hidden")
        .with({{"data.shape", raw_toml("[1, 8, 8]")},
               {"model.name", "vit"},
               {"model.patch", 4},
               {"model.width", 8},
               {"model.depth", 1},
               {"model.heads", 2},
               {"model.adapter", adapter}});
  };
  const auto learning = learning_scenario("stsa").without("rounds.per_task").with({{"strategy.projection_width", 20}});
  const two_scenarios adds(with_vit(trained_scenario(), 0), with_vit(learning, 3));
  CHECK(adds.refusal() == "");
  CHECK(adds.run("adds").status == "done");
  const two_scenarios takes(with_vit(trained_scenario(), 3), with_vit(learning, 0));
  CHECK_THAT(takes.refusal(),
             ContainsSubstring("trains a different net: adapter = 0, but 3 in that scenario; expected the same keys"));
}

TEST_CASE("a damaged backbone file is trained again") {
  const own_cache cache;
  const two_scenarios files(trained_scenario(), split_scenario("fedhaf"));
  const auto first = files.run("first");
  const auto file = cache.nets().front();
  const auto whole = content_of(file);
  auto damaged = whole;
  damaged.back() = static_cast<char>(damaged.back() ^ 1); // changes the sign or the exponent of a weight
  write_file(file, damaged);
  CHECK(files.run("again").run_digest == first.run_digest);
  CHECK(content_of(file) == whole);
}

TEST_CASE("errors of a run are reported before its backbone is trained") {
  const own_cache cache;
  const auto learning = split_scenario("fedhaf");
  const two_scenarios shared(trained_scenario(), learning.with({{"tasks.class_order", "natural"}}));
  CHECK_THAT(shared.refusal(), ContainsSubstring("on classes that the tasks use: 0, 1, 2, 3 of 'synthetic'"));
  CHECK_FALSE(run_simulation(shared.read(), {.out = shared.folder.path() / "out", .style = progress_style::quiet}));
  const two_scenarios wide(trained_scenario().with({{"model.hidden", raw_toml("[12, 7]")}}), learning);
  CHECK_THAT(wide.refusal(), ContainsSubstring("hidden = [12, 9], but [12, 7] in that scenario"));
  const two_scenarios chained(trained_scenario().with({{"model.backbone", "test.toml"}}), learning);
  CHECK_THAT(chained.refusal(), ContainsSubstring("has a model.backbone, too"));
  const two_scenarios both(trained_scenario(), learning);
  write_file(both.folder.path() / "test.toml",
             learning.with({{"model.weights", "backbone.toml"}, {"model.backbone", "backbone.toml"}}).text());
  const auto read = read_scenario(both.folder.path() / "test.toml", {});
  REQUIRE_FALSE(read);
  CHECK_THAT(diagnostic_text(read.error().front()), ContainsSubstring("expected only one of them"));
  const two_scenarios deep(trained_scenario(), learning.with({{"strategy.feature_layer", "layer9"}}));
  const auto begun = run_simulation(deep.read(), {.out = deep.folder.path() / "out", .style = progress_style::quiet});
  REQUIRE_FALSE(begun);
  CHECK_THAT(diagnostic_text(begun.error().front()), ContainsSubstring("no layer of this name to read features from"));
  CHECK_FALSE(fs::exists(cache.folder.path() / "backbones"));
}

TEST_CASE("methods on a frozen backbone have one digest for all threads, workers, widths and shards") {
  for (const std::string method :
       {"fedhaf", "split-fedavg", "split-fedprox", "fed-lwf-2t", "split-oracle", "fed-cil"}) {
    CAPTURE(method);
    const auto scenario =
        method == "fed-cil"
            ? learning_scenario(method).with(
                  {{"model.weights", "as-drawn"}, {"strategy.local_steps", 6}, {"strategy.consolidation_steps", 3}})
            : split_scenario(method);
    const auto whole = run_toml(scenario, {.threads = 1});
    CHECK(whole.summary.status == "done");
    for (const auto& over : {overrides{{"worker.fused_clients_max", "1"}}, overrides{{"worker.fused_clients_max", "3"}},
                             overrides{{"worker.count", "3"}, {"worker.shards", "4"}}})
      CHECK(run_toml(scenario, {.over = over, .threads = 3}).summary.run_digest == whole.summary.run_digest);
  }
}

TEST_CASE("features of a backbone are cached once for all methods that use it") {
  const scratch_folder folder;
  const auto files = [&] { return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator{}); };
  const auto run = [&](const scenario_text& scenario) {
    return run_toml(scenario.with({{"strategy.feature_cache", folder.path().string()}})).summary.run_digest;
  };
  const auto first = run(split_scenario("split-fedavg"));
  CHECK(files() == 2); // one for training rows, one for test rows
  for (const auto* const method : {"fedhaf", "fed-lwf-2t", "split-oracle"}) {
    CAPTURE(method);
    run(split_scenario(method).with({{"strategy.adjustment_width", 7}}));
    CHECK(files() == 2);
  }
  CHECK(run(split_scenario("split-fedavg")) == first);
}

TEST_CASE("methods on a frozen backbone resume from any event, also in asynchronous runs") {
  for (const std::string method : {"fedhaf", "fed-lwf-2t", "fed-cil"}) {
    CAPTURE(method);
    auto scenario =
        method == "fed-cil"
            ? learning_scenario(method).with(
                  {{"model.weights", "as-drawn"}, {"strategy.local_steps", 6}, {"strategy.consolidation_steps", 3}})
            : split_scenario(method);
    const workshop shop(scenario.with({{"checkpoint.force", true}, {"devices.dropout", 0.1}}));
    REQUIRE(shop.run("whole", {.trace = true}).status == "done");
    CHECK(run_in_pieces(shop, "pieces", {.trace = true, .events_max = 13}, workers::others) > 3);
    check_equal_files(shop.path("whole"), shop.path("pieces"), workers::others);
  }
  const auto restless = split_scenario("fedhaf").with(
      {{"rounds.mode", "async"}, {"rounds.per_task", 4}, {"rounds.buffer", 2}, {"rounds.concurrency", 5}});
  const auto alone = run_toml(restless.without("rounds.cohort"), {.threads = 1});
  CHECK(alone.summary.status == "done");
  CHECK(run_toml(restless.without("rounds.cohort"), {.over = {{"worker.fused_clients_max", "1"}}, .threads = 2})
            .summary.run_digest == alone.summary.run_digest);
}

TEST_CASE("image nets reject token rows, and backbones reject layers that they lack") {
  const auto tokens = made_scenario({{"data.shape", raw_toml("[8]")},
                                     {"data.vocabulary_size", 9},
                                     {"data.classes", 4},
                                     {"data.rows", 200},
                                     {"tasks.count", 2},
                                     {"strategy.name", "fedhaf"}});
  CHECK_THAT(refusal_of(tokens.with({{"model.name", "mlp"}})),
             ContainsSubstring("reads images, and the data are rows"));
  CHECK_THAT(refusal_of(split_scenario("fedhaf").with({{"strategy.feature_layer", "layer4"}})),
             ContainsSubstring("no layer of this name to read features from; expected \"\", or one of: fc1, fc2"));
  CHECK(refusal_of(tokens.with({{"model.name", "lstm"}, {"model.hidden", 6}, {"model.weights", "as-drawn"}})) == "");
}

TEST_CASE("an untrained frozen net is rejected unless the scenario allows it") {
  const auto drawn = split_scenario("fedhaf");
  CHECK(refusal_of(drawn) == "");
  CHECK_THAT(refusal_of(drawn.without("model.weights")),
             ContainsSubstring("the net is frozen and untrained") && ContainsSubstring("as-drawn"));
  CHECK_THAT(refusal_of(learning_scenario("fed-cil")), ContainsSubstring("the net is frozen and untrained"));
  const auto head = learning_scenario("fedavg").with({{"model.trainable", "head"}});
  CHECK_THAT(refusal_of(head), ContainsSubstring("the net is frozen and untrained"));
  CHECK(refusal_of(head.with({{"model.weights", "as-drawn"}})) == "");
}
