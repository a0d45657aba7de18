// Methods compared with weights of official programs, recorded by tools/research/export/official. Records in
// tests/golden name repository and commit. Weights after each of three rounds agree to 1e-6.
#include "tests/support/public_federation.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr double tolerance = 1e-6;
using key_texts = public_federation::key_texts;

/// Three rounds of all clients.
void check_rounds(public_federation& federation) {
  const auto& record = federation.record();
  const auto views = views_of(record.at("rows"), record.at("labels"));
  for (int round = 0; round < 3; ++round) {
    federation.round(views);
    INFO("round " << round << " of " << record.at("repository"));
    CHECK(federation.difference() <= tolerance);
  }
}

void check_uploads(const std::string& record, const std::string& name, const key_texts& keys) {
  public_federation federation(record, name, keys);
  for (const auto& uploads : federation.record().at("uploads")) {
    federation.round_of_uploads(uploads);
    INFO(record);
    CHECK(federation.difference() <= tolerance);
  }
}

} // namespace

TEST_CASE("SCAFFOLD with uniform weights equals FL-bench", "[scaffold]") {
  public_federation plain("scaffold/fl_bench_plain", "scaffold", {}, upload_weighting::uniform);
  check_rounds(plain);
  public_federation slow("scaffold/fl_bench_server_rate", "scaffold", {{"server_learning_rate", "0.5"}},
                         upload_weighting::uniform);
  check_rounds(slow);
}

TEST_CASE("SCAFFOLD with weights by rows equals NIID-Bench", "[scaffold]") {
  public_federation weighted("scaffold/niid_bench", "scaffold", {});
  check_rounds(weighted);
}

TEST_CASE("FedNova equals the official program", "[nova]") {
  for (const auto& [name, keys] :
       std::vector<std::pair<std::string, key_texts>>{{"plain", {}},
                                                      {"momentum", {}},
                                                      {"proximal", {{"mu", "0.3"}}},
                                                      {"proximal_momentum", {{"mu", "0.3"}}},
                                                      {"server_momentum", {{"server_momentum", "0.4"}}}}) {
    INFO(name);
    public_federation federation("fed_nova/official_" + name, "fed-nova", keys);
    check_rounds(federation);
  }
}

TEST_CASE("FedNova equals NIID-Bench", "[nova]") {
  public_federation federation("fed_nova/niid_bench", "fed-nova", {{"effective_steps", "weights"}});
  check_rounds(federation);
}

TEST_CASE("MOON equals NIID-Bench", "[moon]") {
  public_federation federation("moon/niid_bench", "moon", {{"mu", "1"}});
  check_rounds(federation);
}

TEST_CASE("server steps of FedAdam and FedYogi equal Flower's", "[adaptive]") {
  const key_texts usual{{"server_learning_rate", "0.05"}, {"tau", "0.001"}, {"second_moment", "zero"}};
  const key_texts fast{
      {"server_learning_rate", "0.1"}, {"beta_1", "0.5"}, {"beta_2", "0.8"}, {"tau", "0.1"}, {"second_moment", "zero"}};
  const auto corrected = [](key_texts keys) {
    keys.emplace_back("bias_correction", "true");
    return keys;
  };
  check_uploads("fed_adam/flower", "fed-adam", corrected(usual));
  check_uploads("fed_adam/flower_fast", "fed-adam", corrected(fast));
  check_uploads("fed_yogi/flower", "fed-yogi", usual);
  check_uploads("fed_yogi/flower_fast", "fed-yogi", fast);
}

TEST_CASE("ER equals Mammoth over three tasks", "[er]") {
  public_federation federation("er/mammoth", "er", {{"buffer", "40"}, {"replay_rows", "40"}});
  const auto& record = federation.record();
  const auto tasks = views_of(record.at("task_rows"), record.at("task_labels"));
  for (std::uint32_t task = 0; task < 3; ++task) {
    federation.round({tasks[task]}, task);
    INFO("task " << task);
    CHECK(federation.difference() <= tolerance);
  }
}
