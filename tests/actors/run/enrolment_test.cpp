// Runs with clients that have not enrolled yet, are active, or have left, for methods that store uploads of clients.
#include "tests/support/run.hpp"
#include "tests/support/scenario_text.hpp"
#include <catch2/catch_test_macros.hpp>
#include <sstream>
using namespace mneme;
using namespace mneme::test;

namespace {

/// Four groups of one client each, four tasks of two classes, 20 rows per task and client.
scenario_text with_table(const std::string& table) {
  return made_scenario({{"seed", 2},
                        {"data.shape", raw_toml("[10]")},
                        {"data.classes", 8},
                        {"data.rows", 320},
                        {"tasks.kind", "domain-incremental"},
                        {"tasks.transform", "class-blocks"},
                        {"tasks.classes_per_task", 2},
                        {"tasks.count", 4},
                        {"partition.kind", "balanced"},
                        {"clients.count", 4},
                        {"rounds.per_task", 2},
                        {"rounds.cohort", 0},
                        {"devices.uplink_mbit", 0},
                        {"devices.downlink_mbit", 0},
                        {"devices.latency", "0 s"},
                        {"enrolment.kind", "table"},
                        {"enrolment.table", raw_toml(table)},
                        {"training.batch", 8},
                        {"model.name", "vee"},
                        {"model.hidden", raw_toml("[8]")},
                        {"model.embedding", 4},
                        {"model.classifier", raw_toml("[6]")},
                        {"strategy.name", "fil-ver"},
                        {"strategy.vee_epochs", 1},
                        {"strategy.server_steps", 4},
                        {"strategy.server_batch", 4},
                        {"strategy.pool_size", 8}});
}

const std::string full = R"(["AAAA", "AAAA", "AAAA", "AAAA"])", shrinking = R"(["AAAA", "AAAO", "AAOO", "AOOO"])",
                  growing = R"(["AAAA", "XAAA", "XXAA", "XXXA"])", scattered = R"(["AOOO", "XAOO", "XXAO", "XXXA"])";

/// Clients dispatched in each task, from events.csv: time, actor, event, client, task, ...
std::vector<std::string> dispatched(const finished_run& run) {
  std::vector<std::string> by_task(4);
  std::istringstream lines(run.events);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');)
      fields.push_back(cell);
    if (fields.at(2) == "dispatch" && by_task.at(std::stoul(fields.at(4)) - 1).find(fields.at(3)) == std::string::npos)
      by_task.at(std::stoul(fields.at(4)) - 1) += fields.at(3);
  }
  return by_task;
}

} // namespace

TEST_CASE("only active clients are dispatched, and rows of other clients are unused", "[enrolment]") {
  using who = std::vector<std::string>;
  const auto run = [](const std::string& table) {
    return run_toml(with_table(table), {.over = {{"worker.lookahead_memory", "1 MiB"}}, .trace = true});
  };
  CHECK(dispatched(run(full)) == who{"0123", "0123", "0123", "0123"});
  const auto fewer = run(shrinking);
  CHECK(dispatched(fewer) == who{"0123", "012", "01", "0"});
  CHECK(fewer.summary.client_rounds == 2 * (4 + 3 + 2 + 1));
  CHECK(fewer.summary.enrolled_max == 4);
  CHECK(dispatched(run(growing)) == who{"0", "01", "012", "0123"});
  CHECK(dispatched(run(scattered)) == who{"0", "1", "2", "3"});
}

TEST_CASE("rows sent by clients that have left stay in the pool", "[enrolment]") {
  // 20 rows per task and client, of which 2 per round are sent: 16 of a task's 40 labels fill a reservoir of 8.
  const auto figures = run_toml(with_table(scattered).with({{"strategy.rehearsal_ratio", 0.5}})).summary.figures;
  CHECK(figures.at("pool_rows") == 4 * 8.0);
}

TEST_CASE("VER without server training equals vanilla FL byte for byte if a client is in every task", "[enrolment]") {
  const auto model = [](const scenario_text::keys& strategy) {
    return run_toml(with_table(scattered).with(strategy)).model;
  };
  const auto vanilla = model({{"strategy.system", "vanilla"}});
  CHECK(model({{"strategy.server_training", false}}) == vanilla);
  CHECK(model({{"strategy.system", "ver-sampled"}, {"strategy.server_training", false}}) == vanilla);
  CHECK(model({}) != vanilla);
}

TEST_CASE("a pretrained encoder file gives the same model as training the encoder in the run", "[enrolment]") {
  const scratch_folder folder;
  const auto trained = run_toml(with_table(full).with({{"strategy.server_training", false}, {"evaluation.every", 0}}),
                                {.over = {{"training.epochs", "0"}, {"rounds.per_task", "1"}}});
  const auto file = folder.path() / "encoder.safetensors";
  write_file(file, trained.model);
  const auto handed =
      run_toml(with_table(growing), {.over = {{"model.seed_weights", file.string()}, {"strategy.vee_epochs", "0"}}});
  CHECK(handed.model == run_toml(with_table(growing)).model);
  CHECK(handed.summary.server_trains_on_rows == false);
}

TEST_CASE("FIL-VER has one digest for all threads and widths, with and without a barrier", "[enrolment]") {
  for (const std::string mode : {"sync", "async"}) {
    const overrides over{{"rounds.mode", mode}};
    const auto table = mode == "sync" ? shrinking : full;
    const auto single = run_toml(with_table(table), {.over = over, .threads = 1});
    CHECK(single.summary.status == "done");
    CHECK(single.summary.figures.at("pool_rows") > 0.0);
    auto narrow = over;
    narrow.emplace_back("worker.fused_clients_max", "1");
    CHECK(run_toml(with_table(table), {.over = narrow, .threads = 3}).summary.run_digest == single.summary.run_digest);
  }
}

TEST_CASE("each client receives the encoder once", "[enrolment]") {
  // encoder 10-8-(4, 4): 80 + 8 + 2 (32 + 4); classifier 4-6-2: 24 + 6 + 12 + 2
  const auto run = run_toml(with_table(growing).with({{"strategy.server_training", false}}));
  const std::int64_t encoder = (80 + 8 + 2 * (32 + 4)) * 4, classifier = (24 + 6 + 12 + 2) * 4, client_rounds = 20;
  CHECK(run.summary.download_bytes == 4 * encoder + client_rounds * classifier);
  CHECK(run.summary.upload_bytes == client_rounds * classifier);
}

TEST_CASE("the classifier can be sent in every transfer format", "[enrolment]") {
  for (const std::string transfer_dtype : {"fp16", "int8"}) {
    const auto run = run_toml(with_table(growing), {.over = {{"devices.transfer_dtype", transfer_dtype}}});
    CHECK(run.summary.status == "done");
  }
}
