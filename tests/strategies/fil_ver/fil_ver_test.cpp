// FIL-VER without actors: memories and uploads of clients, pool and training of the server.
#include "tests/strategies/fil_ver/fil_ver_federation.hpp"
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::fil_ver_case;

namespace {

std::vector<std::string> names_in(const tensor_map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map)
    names.push_back(name);
  return names;
}
using names = std::vector<std::string>;

} // namespace

TEST_CASE("an encoder is trained on task 1, frozen, sent once, and part of no upload") {
  federation federated({});
  const auto before = federated.encoder().clone();
  federated.open(0);
  const auto frozen = federated.encoder().clone();
  CHECK_FALSE(at::equal(frozen, before));
  CHECK(at::equal(federated.sent(0).initial_payload->at(flat_weights), frozen));
  CHECK(federated.sent(0).initial_payload->bytes() == federated.net->encoder()->size() * 4);
  CHECK(federated.sent(0).weights->bytes() == federated.net->classifier()->size() * 4);
  for (std::uint32_t task = 0; task < tasks; ++task) {
    if (task > 0)
      federated.open(task);
    const auto t = std::to_string(task + 1);
    for (const auto& result : federated.run(task, {0, 1})) {
      CHECK(result.upload->at(flat_weights).numel() == federated.net->classifier()->size());
      CHECK(names_in(*result.upload) ==
            names{"rehearsal.labels." + t, "rehearsal.log_sigma." + t, "rehearsal.mu." + t, "weights"});
    }
    CHECK(at::equal(federated.encoder(), frozen));
  }
}

TEST_CASE("the encoder may be trained on rows of enrolled clients, or keep its initial weights") {
  federation federated({}), enrolled({{"vee_data", "enrolled"}}), as_drawn({{"vee_epochs", "0"}});
  const auto drawn = as_drawn.encoder().clone();
  for (auto* run : {&federated, &enrolled, &as_drawn})
    run->open(0);
  CHECK_FALSE(at::equal(federated.encoder(), enrolled.encoder()));
  CHECK(at::equal(as_drawn.encoder(), drawn));
  CHECK(federated.method->needs().server_trains_on_rows);
  CHECK_FALSE(as_drawn.method->needs().server_trains_on_rows);
}

TEST_CASE("a small KL divergence gives a warning with its value in nats, and metrics in the summary") {
  federation tight({{"beta", "10"}, {"vee_epochs", "30"}});
  tight.open(0);
  REQUIRE(tight.warnings.size() == 1);
  CHECK(tight.warnings[0].find("nats of KL divergence per sample") != std::string::npos);
  const auto figures = tight.server->summary_metrics();
  CHECK(figures.at("kl_per_sample") < 50.0);
  CHECK(figures.at("kl_per_dimension") == figures.at("kl_per_sample") / width);
  CHECK(figures.at("sigma_mean") > 0.0);
  federation points({{"system", "ebr"}});
  points.open(0);
  CHECK(points.warnings.empty());
}

TEST_CASE("a rehearsal vector is D floats and a label, a pair of statistics twice as many floats") {
  constexpr std::int64_t of_20_rows = 2;
  for (const auto& [system, floats] :
       {std::pair{"ver-stats", 2 * width}, std::pair{"ver-sampled", width}, std::pair{"ebr", width}}) {
    INFO(system);
    federation federated({{"system", system}});
    federated.open(0);
    const auto upload = federated.answer(0, 0).upload;
    CHECK(upload->bytes() == federated.net->classifier()->size() * 4 + of_20_rows * (floats * 4 + 4));
  }
  CHECK(256 * 4 + 4 == 1'028);
  CHECK(2 * 256 * 4 + 4 == 2'052);
}

TEST_CASE("VER-Sampled sends samples and no statistics; without deviation they are the means") {
  federation federated({{"system", "ver-sampled"}});
  federated.open(0);
  const auto result = federated.answer(0, 0);
  CHECK(names_in(*result.upload) == names{"rehearsal.labels.1", "rehearsal.z.1", "weights"});
  const auto means = result.memory->at("features.1").narrow(1, 0, width);
  const auto closest = [&](const at::Tensor& z, const at::Tensor& among) { // the largest of each row's distance
    return (z.unsqueeze(1) - among.unsqueeze(0)).abs().amax(2).amin(1).max().item<float>();
  };
  CHECK(closest(result.upload->at("rehearsal.z.1"), means) > 1e-3F);

  federation points({{"system", "ver-sampled"}, {"vee_epochs", "0"}}, -80.0);
  auto flat = points.initial->at(flat_weights).clone();
  for (const auto& parameter : points.net->layout())
    if (parameter.name.starts_with("encoder.log_sigma"))
      flat.narrow(0, parameter.offset, parameter.size).fill_(parameter.name.ends_with("bias") ? -30.0F : 0.0F);
  points.initial = weights_only(flat);
  points.method->prepare(points.setup());
  points.server = points.method->make_server();
  points.open(0);
  const auto tight = points.answer(0, 0);
  CHECK(closest(tight.upload->at("rehearsal.z.1"), tight.memory->at("features.1").narrow(1, 0, width)) < 1e-6F);
}

TEST_CASE("a row is sent once per run unless several samples of it are allowed") {
  for (const bool once : {true, false}) {
    federation federated({{"system", "ver-sampled"},
                          {"rehearsal_ratio", "0.4"},
                          {"sample_once", once ? "true" : "false"},
                          {"pool", "all"}});
    federated.open(0);
    std::vector<std::int64_t> sent;
    for (int i = 0; i < 4; ++i) {
      const auto upload = federated.run(0, {0}).front().upload;
      const auto* const labels = upload->find("rehearsal.labels.1");
      sent.push_back(labels ? labels->numel() : 0);
    }
    CHECK(sent == (once ? std::vector<std::int64_t>{8, 8, 4, 0} : std::vector<std::int64_t>{8, 8, 8, 8}));
    CHECK(federated.server->summary_metrics().at("pool_rows") == (once ? 20.0 : 32.0));
  }
}

TEST_CASE("vectors that were not delivered are sent again") {
  federation federated({{"rehearsal_ratio", "1.0"}});
  federated.open(0);
  (void)federated.answer(0, 0); // lost, so its memory is not kept
  CHECK(federated.answer(0, 0).upload->at("rehearsal.labels.1").numel() == 20);
}

TEST_CASE("a client encodes its rows once per task and rehearses a share of each earlier one") {
  federation federated({{"rehearsal_ratio", "0.2"}});
  for (std::uint32_t task = 0; task < tasks; ++task) {
    federated.open(task);
    for (int i = 0; i < 2; ++i) {
      std::vector<std::int64_t> mine;
      for (std::int64_t row = 0; row < rows_each; row += 2)
        mine.push_back(row + task * rows_each);
      client_round_runner run(*federated.method, {.client = {0},
                                                  .in = std::make_shared<const broadcast>(federated.sent(task)),
                                                  .memory = federated.memory[0],
                                                  .samples = view_of(federated.rows, mine),
                                                  .seed = 5,
                                                  .visit = federated.visits[0]});
      auto step = run.start();
      if (i == 0) {
        auto first = std::get<plan>(std::move(step));
        const auto& looking = std::get<extract_job>(first.at(0));
        CHECK(looking.samples.size() == 20);
        CHECK(looking.net == federated.net->encoder());
        step = run.resume(run_plan(*federated.device, std::move(first)));
      }
      const auto& training = std::get<train_job>(std::get<plan>(step).at(0));
      CHECK(training.net == federated.net->classifier());
      CHECK(training.samples.size() == 20 + 4 * static_cast<std::int64_t>(task));
      CHECK(training.samples.source->deviations.defined());
      (void)federated.run(task, {0});
    }
  }
}

TEST_CASE("without rehearsal a client remembers only its current task") {
  federation federated({{"client_rehearsal", "false"}});
  for (std::uint32_t task = 0; task < 2; ++task) {
    federated.open(task);
    (void)federated.run(task, {0});
  }
  CHECK(names_in(*federated.memory[0]) == names{"features.2", "labels.2", "sent"});
}

TEST_CASE("a client that has left keeps its vectors in the pool and receives nothing") {
  federation federated({{"pool", "all"}, {"rehearsal_ratio", "0.5"}});
  federated.open(0);
  (void)federated.run(0, {0, 1});
  CHECK(federated.server->summary_metrics().at("pool_rows") == 20.0);
  federated.open(1);
  (void)federated.run(1, {1});
  CHECK(federated.server->summary_metrics().at("pool_rows") == 30.0);
}

TEST_CASE("vectors count for the task in which they were made, even if they arrive late") {
  federation federated({{"pool_size", "8"}, {"rehearsal_ratio", "1.0"}});
  federated.open(0);
  (void)federated.run(0, {0});
  CHECK(federated.server->summary_metrics().at("pool_rows") ==
        4.0); // its rows have every other label, with 2 places each
  const auto late = federated.answer(1, 0);
  federated.open(1);
  federated.server->fold({.from = {1}, .started_from = {0}, .upload = late.upload, .rows = late.rows});
  CHECK(federated.server->summary_metrics().at("pool_rows") ==
        8.0); // the other labels of task 1: its reservoir is full
  (void)federated.run(1, {0});
  CHECK(federated.server->summary_metrics().at("pool_rows") == 12.0);
}

TEST_CASE("vanilla equals VER without server training bit by bit if clients have no earlier task") {
  // Scenario 4: a different client in every task.
  const auto learned = [](const key_list& keys) {
    federation federated(keys);
    federated.open(0);
    (void)federated.run(0, {0});
    (void)federated.run(0, {0});
    federated.open(1);
    (void)federated.run(1, {1});
    (void)federated.run(1, {1});
    return federated.model();
  };
  const auto vanilla = learned({{"system", "vanilla"}});
  CHECK(at::equal(vanilla, learned({{"server_training", "false"}})));
  CHECK(at::equal(vanilla, learned({{"system", "ver-sampled"}, {"server_training", "false"}})));
  CHECK_FALSE(at::equal(vanilla, learned({})));
}

TEST_CASE("classifiers are averaged by rows: 0 from 100 and 4 from 300 make 3") {
  federation federated({{"system", "vanilla"}});
  federated.open(0);
  const auto size = federated.net->classifier()->size();
  for (const auto& [value, rows] : {std::pair{0.0F, 100}, std::pair{4.0F, 300}})
    federated.server->fold({.upload = weights_only(at::full({size}, value)), .rows = rows});
  job_channel channel;
  server_context ctx(channel);
  run_step(federated.server->close_round(ctx, federated.info(0)), channel, *federated.device);
  CHECK(at::equal(federated.model().narrow(0, federated.net->encoder()->size(), size), at::full({size}, 3.0F)));
}

TEST_CASE("zero server steps mean no server training") {
  const auto learned = [](const key_list& keys) {
    federation federated(keys);
    federated.open(0);
    (void)federated.run(0, {0, 1});
    federated.open(1);
    (void)federated.run(1, {0, 1});
    return federated.model();
  };
  const auto without = learned({{"server_training", "false"}});
  CHECK(at::equal(learned({{"server_steps", "0"}}), without));
  CHECK_FALSE(at::equal(learned({{"server_steps", "1"}}), without));
  CHECK(at::equal(learned({{"server_learning_rate", "0"}}), without));
}

TEST_CASE("the server takes S steps of plain SGD on its pool, equal to PyTorch's") {
  federation federated({{"system", "ebr"}, {"server_steps", "3"}, {"server_batch", "4"}, {"rehearsal_ratio", "0.05"}});
  federated.open(0);
  const auto result = federated.answer(0, 0); // a single vector: every batch is it, four times
  federated.server->fold({.from = {0}, .started_from = {0}, .upload = result.upload, .rows = result.rows});
  job_channel channel;
  server_context ctx(channel);
  run_step(federated.server->close_round(ctx, federated.info(0)), channel, *federated.device);
  const auto trained =
      federated.model().narrow(0, federated.net->encoder()->size(), federated.net->classifier()->size());

  auto flat = result.upload->at(flat_weights).clone();
  const auto x = result.upload->at("rehearsal.embedding.1").repeat({4, 1});
  const auto y = result.upload->at("rehearsal.labels.1").to(at::kLong).repeat({4});
  REQUIRE(result.upload->at("rehearsal.labels.1").numel() == 1);
  for (int step = 0; step < 3; ++step) {
    auto leaf = flat.detach().clone().requires_grad_(true);
    const auto part = [&](std::size_t i) { return as_in_files(leaf, federated.net->classifier()->layout()[i]); };
    const auto logits = at::linear(at::relu(at::linear(x, part(0), part(1))), part(2), part(3));
    at::cross_entropy_loss(logits, y).backward();
    flat = flat - 0.05 * leaf.grad();
  }
  CHECK(at::allclose(trained, flat, 1e-5, 1e-6));
}

TEST_CASE("EBR may rehearse more vectors than drawn rows, up to a limit of repetitions") {
  const auto trained_rows = [](const key_list& keys) {
    federation federated(keys);
    federated.open(0);
    (void)federated.run(0, {0});
    federated.open(1);
    client_round_runner run(*federated.method,
                            {.client = {0},
                             .in = std::make_shared<const broadcast>(federated.sent(1)),
                             .memory = federated.memory[0],
                             .samples = view_of(federated.rows, {40, 41, 42, 43, 44, 45, 46, 47, 48, 49}),
                             .seed = 5,
                             .visit = 1});
    auto step = run.start();
    step = run.resume(run_plan(*federated.device, std::get<plan>(std::move(step))));
    return std::get<train_job>(std::get<plan>(step).at(0)).samples.size();
  };
  CHECK(trained_rows({{"system", "ebr"}}) == 11);
  CHECK(trained_rows({{"system", "ebr"}, {"ebr_multiplier", "16"}}) == 26);
  CHECK(trained_rows({{"system", "ebr"}, {"ebr_multiplier", "64"}}) == 30);
  CHECK(trained_rows({{"system", "ebr"}, {"ebr_multiplier", "64"}, {"ebr_repeat_cap", "2"}}) == 50);
}

TEST_CASE("a system with a wrong encoder, and a pool smaller than a batch, are refused") {
  const auto objection = [](const std::string& system, bool normal) {
    const auto method = strategy_named("fil-ver");
    give_keys(*method, {{"system", system}});
    const embedding_shape shape{.hidden = {4}, .embedding = 2, .classifier = {4}, .normal = normal};
    return setup_error(*method,
                       std::make_shared<const embedding_model>(shape, std::array<std::int64_t, 3>{1, 1, 3}, 2));
  };
  for (const std::string system : {"ver-stats", "ver-sampled"}) {
    CHECK(objection(system, true).empty());
    CHECK(objection(system, false).find("need means and deviations") != std::string::npos);
  }
  CHECK(objection("ebr", false).empty());
  CHECK(objection("ebr", true).find("model.name = \"ebr\"") != std::string::npos);
  CHECK(objection("vanilla", true).empty());
  CHECK(objection("vanilla", false).empty());
  CHECK(setup_error(*strategy_named("fil-ver"), model_named("mlp", {1, 1, 3}, 2)).find("\"vee\"") != std::string::npos);

  federation small({{"pool_size", "7"}});
  const auto errors = small.method->check(small.setup());
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "strategy.pool_size");
  CHECK(errors[0].text == "strategy.pool_size = 7: expected at least one batch, strategy.server_batch = 8");
  CHECK(federation({{"pool_size", "8"}}).method->check(small.setup()).empty());
  CHECK(federation({{"pool_size", "7"}, {"pool", "all"}}).method->check(small.setup()).empty());
}

TEST_CASE("the classifier may be tested on samples, which follow the seed") {
  CHECK_FALSE(federation({}).server->predict().classifier->sampled);
  const federation sampled({{"embedding", "sample"}});
  const auto learned = sampled.server->predict();
  REQUIRE(learned.classifier->sampled);
  CHECK(learned.classifier->sampled->stream.seed == 5);
  CHECK(learned.classifier->reads == width);
}
