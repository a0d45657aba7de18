// Draws, uploads, training and metrics of FIL-VER, compared with the method's random keys and formulas.
#include "strategies/fil_ver/embedding_pool.hpp"
#include "strategies/fil_ver/frozen_encoder.hpp"
#include "strategies/fil_ver/ver_loss.hpp"
#include "tests/strategies/fil_ver/fil_ver_federation.hpp"
#include <algorithm>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using namespace mneme::test::fil_ver_case;
using Catch::Matchers::WithinRel;

namespace {

// Purposes of the method's random streams, in the order of its file.
enum draws : std::uint32_t { rehearsal_draw = first_method_purpose, material_draw, sample_draw, pool_draw, batch_draw };

std::vector<std::int64_t> rows_of_client(std::uint32_t c, std::uint32_t task) {
  std::vector<std::int64_t> mine;
  for (std::int64_t row = c; row < rows_each; row += 2)
    mine.push_back(row + task * rows_each);
  return mine;
}

/// Current training rows of client 0: means [n, D] and deviations.
std::shared_ptr<const dataset> training_rows(federation& in, std::uint32_t task) {
  const assignment assigned{.client = {0},
                            .in = std::make_shared<const broadcast>(in.sent(task)),
                            .memory = in.memory[0],
                            .samples = view_of(in.rows, rows_of_client(0, task)),
                            .seed = 5,
                            .visit = in.visits[0]};
  const auto jobs = jobs_of_kind<train_job>(jobs_of_round(*in.method, *in.device, assigned));
  REQUIRE(jobs.size() == 1);
  return jobs.front().samples.source;
}

/// Mean embeddings of a task in client 0's memory, at these positions.
at::Tensor remembered_means(const federation& in, std::uint32_t task, const std::vector<std::int64_t>& places) {
  const auto features = in.memory[0]->at("features." + std::to_string(task + 1)).narrow(1, 0, width);
  return features.index_select(0, at::tensor(places, at::kLong));
}

/// Weights of `net` with all log deviations at -30 and all other values from `flat`.
at::Tensor without_deviation(const embedding_model& net, const at::Tensor& flat) {
  auto made = flat.clone();
  for (const auto& parameter : net.layout())
    if (parameter.name.starts_with("encoder.log_sigma"))
      made.narrow(0, parameter.offset, parameter.size).fill_(parameter.name.ends_with("bias") ? -30.0F : 0.0F);
  return made;
}

void begin_with(federation& run, const at::Tensor& flat) {
  run.initial = weights_only(flat);
  run.method->prepare(run.setup());
  run.server = run.method->make_server();
}

} // namespace

TEST_CASE("VER without deviation equals EBR: the same classifier after all tasks") {
  federation ver({{"vee_epochs", "0"}}, -80.0), ebr({{"system", "ebr"}, {"vee_epochs", "0"}});
  begin_with(ver, without_deviation(*ver.net, ver.initial->at(flat_weights)));
  // EBR's points are VER's means: layers of one name have equal initial values, the embedding those of the means.
  const auto whole = ver.initial->at(flat_weights);
  auto flat = ebr.initial->at(flat_weights).clone();
  for (const auto& to : ebr.net->layout()) {
    auto name = to.name;
    if (name.starts_with("encoder.embedding"))
      name.replace(0, std::string("encoder.embedding").size(), "encoder.mu");
    const auto& layout = ver.net->layout();
    const auto from = std::find_if(layout.begin(), layout.end(), [&](const parameter& p) { return p.name == name; });
    CAPTURE(to.name);
    REQUIRE((from != layout.end() && from->size == to.size));
    flat.narrow(0, to.offset, to.size).copy_(whole.narrow(0, from->offset, from->size));
  }
  begin_with(ebr, flat);
  for (std::uint32_t task = 0; task < tasks; ++task)
    for (auto* run : {&ver, &ebr}) {
      run->open(task);
      (void)run->run(task, {0, 1});
      (void)run->run(task, {0});
    }
  const auto classifier = [](const federation& run) {
    const auto size = run.net->classifier()->size();
    return run.model().narrow(0, run.net->encoder()->size(), size);
  };
  CHECK(at::allclose(classifier(ver), classifier(ebr), 1e-5, 1e-7));
  CHECK_FALSE(at::allclose(classifier(ver), classifier(federation({{"vee_epochs", "0"}})), 1e-3, 1e-4));
}

TEST_CASE("with 256 numbers a rehearsal vector has 1,028 bytes and a pair of statistics 2,052") {
  for (const auto& [system, bytes] : {std::pair{"ver-stats", 2'052}, {"ver-sampled", 1'028}, {"ebr", 1'028}}) {
    CAPTURE(system);
    federation wide({{"system", system}, {"vee_epochs", "0"}}, -6.0, 256);
    wide.open(0);
    const auto upload = wide.answer(0, 0).upload;
    CHECK(upload->at("rehearsal.labels.1").numel() == 2); // a tenth of 20 rows
    CHECK(upload->bytes() == wide.net->classifier()->size() * 4 + 2 * bytes);
  }
}

TEST_CASE("an upload's weight is the rows of the current task, however many are rehearsed") {
  for (const std::string system : {"ver-stats", "ebr"}) {
    federation federated({{"system", system}, {"rehearsal_ratio", "0.5"}});
    for (std::uint32_t task = 0; task < tasks; ++task) {
      federated.open(task);
      CHECK(federated.run(task, {0}).front().rows == 20);
    }
  }
}

TEST_CASE("every round draws new rehearsal rows, separately for each earlier task") {
  federation federated({{"rehearsal_ratio", "0.2"}});
  for (std::uint32_t task = 0; task < 2; ++task) {
    federated.open(task);
    (void)federated.run(task, {0});
  }
  federated.open(2);
  std::vector<std::vector<std::int64_t>> drawn;
  for (int round = 0; round < 2; ++round) {
    const auto rows = training_rows(federated, 2);
    REQUIRE(rows->vectors.size(0) == 28);
    for (std::uint32_t past = 0; past < 2; ++past) {
      const rng_key key{.seed = 5, .purpose = rehearsal_draw, .task = {2}, .visit = federated.visits[0], .index = past};
      drawn.push_back(draw_positions(20, 4, key));
      CHECK(at::equal(rows->vectors.narrow(0, 20 + 4 * past, 4), remembered_means(federated, past, drawn.back())));
    }
    (void)federated.run(2, {0});
  }
  std::sort(drawn.begin(), drawn.end());
  CHECK(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
}

TEST_CASE("VER-Sampled sends samples under a key of the round, of rows drawn by another key") {
  federation federated({{"system", "ver-sampled"}, {"rehearsal_ratio", "0.2"}, {"sample_once", "false"}});
  federated.open(0);
  for (std::uint32_t visit = 0; visit < 2; ++visit) {
    const auto upload = federated.run(0, {0}).front().upload;
    const auto chosen = draw_positions(20, 4, {.seed = 5, .purpose = material_draw, .visit = visit});
    const embedding_rows current{.features = federated.memory[0]->at("features.1"),
                                 .labels = federated.memory[0]->at("labels.1")};
    const auto z =
        sampled(current.at(chosen), federated.net->shape(), {.seed = 5, .purpose = sample_draw, .visit = visit});
    CHECK(at::equal(upload->at("rehearsal.z.1"), z));
  }
}

TEST_CASE("the server draws new samples from statistics and uses points unchanged") {
  for (const std::string system : {"ver-stats", "ver-sampled", "ebr"}) {
    CAPTURE(system);
    federation federated(
        {{"system", system}, {"rehearsal_ratio", "0.05"}, {"server_learning_rate", "0.03"}, {"vee_epochs", "1"}});
    federated.open(0);
    federated.server_trainings.clear();
    const auto upload = federated.run(0, {0}).front().upload;
    REQUIRE(federated.server_trainings.size() == 1);
    const auto& job = federated.server_trainings.front();
    CHECK(job.options.learning_rate == 0.03);
    CHECK((job.options.batch_rows == 8 && job.options.epochs == 1 && job.options.in_order));
    CHECK((job.options.classes == class_range{0, classes}));
    CHECK(at::equal(job.start->at(flat_weights), upload->at(flat_weights))); // the mean of one
    const auto& source = *job.samples.source;
    CHECK(job.samples.size() == 5 * 8);
    const auto sent = [&](const char* name) {
      return upload->at(std::string("rehearsal.") + name + ".1").expand({40, width}); // a single row
    };
    CHECK(source.deviations.defined() == (system == "ver-stats"));
    if (system == "ver-stats") {
      CHECK(at::equal(source.vectors, sent("mu")));
      CHECK(at::allclose(source.deviations, sent("log_sigma").clamp(-6.0, 3.0).exp()));
    } else {
      CHECK(at::equal(source.vectors, sent(system == "ebr" ? "embedding" : "z")));
    }
  }
}

TEST_CASE("the server's batches are drawn from the pool by a key of the round, balanced or uniform") {
  for (const auto& [text, balance] :
       {std::pair{"task-balanced", pool_balance::task_balanced}, {"uniform", pool_balance::uniform}}) {
    CAPTURE(text);
    federation federated({{"pool_batch", text}, {"pool", "all"}, {"rehearsal_ratio", "1.0"}});
    embedding_pool pool({.kind = pool_kind::everything,
                         .labels = std::vector<class_range>(tasks, {0, classes}),
                         .stream = {.seed = 5, .purpose = pool_draw}});
    std::vector<at::Tensor> drawn;
    std::vector<std::uint32_t> visits;
    for (std::uint32_t task = 0; task < 2; ++task) {
      federated.open(task);
      for (int i = 0; i < 2; ++i) {
        federated.server_trainings.clear();
        const std::uint32_t round = federated.round;
        for (const auto& result : federated.run(task, task == 0 ? std::vector{0U, 1U} : std::vector{0U})) {
          const auto t = std::to_string(task + 1);
          if (result.upload->find("rehearsal.mu." + t)) // all vectors are sent in the first round of a task
            pool.add({task},
                     {.features = at::cat(
                          {result.upload->at("rehearsal.mu." + t), result.upload->at("rehearsal.log_sigma." + t)}, 1),
                      .labels = result.upload->at("rehearsal.labels." + t)});
        }
        REQUIRE(federated.server_trainings.size() == 1);
        const auto expected =
            pool.drawn(5, 8, balance, {.seed = 5, .purpose = batch_draw, .task = {task}, .index = round});
        const auto& job = federated.server_trainings.front();
        CHECK(at::equal(job.samples.source->vectors, expected.features.narrow(1, 0, width)));
        drawn.push_back(expected.features);
        visits.push_back(job.stream.visit); // keys of the noise of a round's samples
      }
    }
    CHECK_FALSE(at::equal(drawn[0], drawn[1]));
    CHECK(visits == std::vector<std::uint32_t>{1, 2, 3, 4});
    CHECK(pool.size({0}) == 40);
    CHECK(pool.size({1}) == 20);
  }
}

TEST_CASE("the encoder is trained by Adam on eq. 9 with its beta, or on cross-entropy for point embeddings") {
  federation ver({{"beta", "0.02"}, {"vee_epochs", "3"}, {"vee_learning_rate", "0.004"}}), ebr({{"system", "ebr"}});
  ver.open(0);
  ebr.open(0);
  REQUIRE((ver.server_trainings.size() == 1 && ebr.server_trainings.size() == 1));
  const auto& job = ver.server_trainings.front();
  CHECK(job.objective->identity() == ver_loss(0.02, -6.0, 3.0)->identity());
  CHECK(ebr.server_trainings.front().objective->identity() == cross_entropy_objective()->identity());
  CHECK(job.options.optimizer == optimizer_kind::adam);
  CHECK((job.options.learning_rate == 0.004 && job.options.epochs == 3 && job.options.batch_rows == 8));
  CHECK((job.options.classes == class_range{0, classes}));
  CHECK(at::equal(job.start->at(flat_weights), ver.initial->at(flat_weights)));
  CHECK(*job.samples.rows == rows_of_task(0, 1));
}

TEST_CASE("embedding metrics are means over rows: KL divergence in nats, and deviations") {
  federation federated({{"vee_epochs", "0"}});
  federated.open(0);
  const auto seen = run_plan(*federated.device, {extract_job{.net = federated.net->encoder(),
                                                             .weights = weights_only(federated.encoder().clone()),
                                                             .samples = view_of(federated.rows, rows_of_task(0, 1)),
                                                             .logits = false}});
  const auto features = std::get<extract_output>(std::get<work_output>(seen[0])).features.to(at::kDouble);
  const auto mean = features.narrow(1, 0, width), log = features.narrow(1, width, width).clamp(-6.0, 3.0);
  const auto kl = (0.5 * (mean.square() + (2.0 * log).exp() - 1.0 - 2.0 * log)).sum(1).mean().item<double>();
  const auto figures = federated.server->summary_metrics();
  CHECK_THAT(figures.at("kl_per_sample"), WithinRel(kl, 1e-6));
  CHECK_THAT(figures.at("kl_per_dimension"), WithinRel(kl / width, 1e-6));
  CHECK_THAT(figures.at("sigma_mean"), WithinRel(log.exp().mean().item<double>(), 1e-6));
}

TEST_CASE("two thousand rows, spread over all, are measured") {
  const federation from({});
  frozen_encoder encoder(from.setup(), {.epochs = 0});
  std::vector<std::int64_t> rows(4'000);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::int64_t>(10 * i);
  job_channel channel;
  server_context ctx(channel);
  auto step = encoder.train(ctx, view_of(from.rows, rows), {0, classes});
  step.start();
  const auto looking = jobs_of_kind<extract_job>(channel.take_plan());
  REQUIRE(looking.size() == 1);
  REQUIRE(looking[0].samples.size() == 2'000);
  CHECK((*looking[0].samples.rows)[1] == 20);
  CHECK(looking[0].samples.rows->back() == 39'980);
}

TEST_CASE("the classifier starts with the last weights of the whole net") {
  const federation from({});
  const auto& whole = from.initial->at(flat_weights);
  const auto size = from.net->classifier()->size();
  CHECK(from.net->encoder()->size() + size == whole.numel());
  CHECK(at::equal(classifier_setup(from.setup()).initial->at(flat_weights),
                  whole.narrow(0, from.net->encoder()->size(), size)));
}

TEST_CASE("the federated classifier may start from its own draw, which follows the seed") {
  federation shared({}), own({{"classifier_start", "own"}}), again({{"classifier_start", "own"}});
  const auto sent = [](federation& from) { return from.sent(0).weights->at(flat_weights); };
  CHECK(at::equal(sent(shared), classifier_setup(shared.setup()).initial->at(flat_weights)));
  CHECK_FALSE(at::equal(sent(own), sent(shared)));
  CHECK(at::equal(sent(own), sent(again)));
  CHECK(at::equal(own.encoder(), shared.encoder())); // the encoder starts equally
  CHECK_THAT(sent(own).std().item<float>(), WithinRel(sent(shared).std().item<float>(), 0.2F));
}
