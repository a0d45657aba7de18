// training.label_smoothing and training.drop_last: every method either uses them in its training or refuses them with a
// reason.
#include "tests/support/method_federation.hpp"
#include "tests/support/shown_steps.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <set>
using namespace mneme;
using namespace mneme::test;

namespace {

using names = std::set<std::string>;

/// Methods whose check() reports an error about this key.
names refusing(const std::string& key, const training_section& training) {
  names methods;
  for (const auto& entry : strategies()) {
    const method_federation federated(entry.name, {}, "cpu", training);
    for (const auto& error : federated.method->check(federated.setup))
      if (error.where == key) {
        INFO(entry.name);
        CHECK_THAT(error.text, Catch::Matchers::StartsWith(key + " = "));
        methods.insert(entry.name);
      }
  }
  return methods;
}

/// Training jobs of two rounds, one in each task, of the server and of client 0.
std::vector<train_job> trainings_of(method_federation& federated) {
  std::vector<train_job> trainings;
  const auto add = [&](const plan& jobs) {
    for (auto& job : jobs_of_kind<train_job>(jobs))
      trainings.push_back(std::move(job));
  };
  const auto server = federated.method->make_server();
  job_channel channel;
  server_context ctx(channel, &federated.central, &federated.made);
  memory_ref memory;
  for (std::uint32_t task = 0; task < 2; ++task) {
    auto info = method_federation::place_in(task, task);
    const auto plan = run_shown_step(server->open_task(ctx, info), channel, *federated.device, add);
    info.rounds_of_task = plan.rounds.value_or(1);
    auto in = server->open_round(info);
    in.info = info;
    add(jobs_of_round(*federated.method, *federated.device, federated.work_for(0, in, memory)));
    for (std::uint32_t c = 0; c < method_federation::clients; ++c) {
      auto result =
          run_round(*federated.method, *federated.device, federated.work_for(c, in, c == 0 ? memory : nullptr));
      server->fold({.assignment = {c}, .from = {c}, .started_from = {}, .upload = result.upload, .rows = result.rows});
      if (c == 0 && result.memory)
        memory = result.memory;
    }
    run_shown_step(server->close_round(ctx, info), channel, *federated.device, add);
  }
  return trainings;
}

} // namespace

TEST_CASE("methods without a cross-entropy of labels refuse label smoothing", "[training_keys]") {
  CHECK(refusing("training.label_smoothing", {.batch = 4}).empty());
  CHECK(
      refusing("training.label_smoothing", {.batch = 4, .label_smoothing = 0.1}) ==
      names{"afc", "dde", "dytox", "fed-cil", "fedhaf", "fil-ver", "glfc", "icarl", "lander", "lga", "mfcl", "podnet"});
}

TEST_CASE("methods with their own training steps refuse drop_last", "[training_keys]") {
  CHECK(refusing("training.drop_last", {.batch = 4}).empty());
  CHECK(refusing("training.drop_last", {.batch = 4, .drop_last = true}) == names{"fed-cil", "fil-ver"});
}

TEST_CASE("every method names the terms of its training loss as docs/metrics.md lists them", "[training_loss]") {
  std::ifstream file(MNEME_SOURCE_DIR "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const auto& entry : strategies()) {
    INFO(entry.name);
    method_federation federated(entry.name);
    for (const auto& trained : trainings_of(federated)) {
      const std::vector<job> single{{.id = {}, .request = trained}};
      const auto outcome = federated.device->run(single).front();
      const auto* const output = std::get_if<work_output>(&outcome);
      REQUIRE(output);
      for (const auto& [name, value] : std::get<train_output>(*output).loss_terms()) {
        CHECK(name != "loss");
        CAPTURE(name);
        CHECK(page.find("`" + name + "`") != std::string::npos);
      }
    }
  }
}

TEST_CASE("every other method trains with smoothed labels and complete batches", "[training_keys]") {
  const training_section training{.batch = 4, .label_smoothing = 0.1, .drop_last = true};
  const auto refused = refusing("training.label_smoothing", training);
  for (const auto& entry : strategies()) {
    if (refused.contains(entry.name))
      continue;
    INFO(entry.name);
    method_federation federated(entry.name, {}, "cpu", training);
    bool reads = false;
    for (const auto& job : trainings_of(federated))
      reads = reads || (job.options.label_smoothing == 0.1 && job.options.drop_last);
    CHECK(reads);
  }
}
