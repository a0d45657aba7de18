// Fed-LwF, Fed-EWC, FedDyn, FedET and FedIL+: their losses by hand, and their relation to other methods.
#include "tests/support/method_driver.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t features = 3, classes = 4;

method_setup setup_of(const std::string& model = "linear") {
  const auto net = model_named(model, {1, 1, features}, classes);
  auto setup = setup_of_run(net, features, 2, 2);
  setup.training = {.batch = 4, .learning_rate = 0.3, .momentum = 0.5};
  setup.seed = 1;
  return setup;
}

/// Two tasks of two rounds with one client; the model after each task.
struct two_tasks {
  std::unique_ptr<strategy> method;
  std::unique_ptr<server_half> server;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::vector<at::Tensor> after{};
  std::vector<tensors_ref> extras{}, uploads{}, sent{}, memories{};

  explicit two_tasks(const std::string& name, const std::vector<std::pair<std::string, std::string>>& keys = {},
                     const std::string& model = "linear")
      : method(strategy_named(name)) {
    give_keys(*method, keys);
    method->prepare(setup_of(model));
    server = method->make_server();
    const auto rows = striped_rows(32, features, classes);
    job_channel channel;
    generated_row_store made(row_format{.scale = rows->scale, .shift = rows->shift, .classes = classes});
    server_context ctx(channel, nullptr, &made);
    memory_ref memory;
    for (std::uint32_t t = 0; t < 2; ++t) {
      auto info = class_task(t, 2);
      info.rounds_of_task = 2;
      (void)run_step(server->open_task(ctx, info), channel, *device);
      std::vector<std::int64_t> mine;
      for (std::int64_t r = 0; r < 32; ++r)
        if (r % classes / 2 == t)
          mine.push_back(r);
      for (info.round_of_task = 0; info.round_of_task < 2; ++info.round_of_task, ++info.round.value) {
        auto in = server->open_round(info);
        in.info = info;
        extras.push_back(in.extra);
        sent.push_back(in.weights);
        auto result = run_round(*method, *device,
                                {.client = {0},
                                 .in = std::make_shared<const broadcast>(in),
                                 .memory = memory,
                                 .samples = view_of(rows, mine),
                                 .seed = 1});
        memory = result.memory ? result.memory : memory;
        memories.push_back(memory);
        uploads.push_back(result.upload);
        server->fold({.from = {0}, .started_from = {}, .upload = result.upload, .rows = result.rows});
        run_step(server->close_round(ctx, info), channel, *device);
      }
      after.push_back(server->predict().weights->at(flat_weights));
    }
  }
};

} // namespace

TEST_CASE("Fed-EWC as in the official code equals fine-tuning bit by bit, and with a penalty it does not", "[ewc]") {
  // Head rows that a task trains have no Fisher information yet, so the penalty regularizes the body.
  const two_tasks finetune("finetune", {}, "mlp"), noop("fed-ewc", {{"ewc_mode", "repo_noop"}}, "mlp"),
      faithful("fed-ewc", {}, "mlp");
  CHECK(at::equal(noop.after[1], finetune.after[1]));
  CHECK(at::equal(faithful.after[0], finetune.after[0]));
  CHECK_FALSE(at::equal(faithful.after[1], finetune.after[1]));
  const two_tasks free("fed-ewc", {{"ewc_lambda", "0"}}, "mlp");
  CHECK(at::allclose(free.after[1], finetune.after[1], 1e-6, 1e-7));
  // A strong penalty, but not so strong that steps overshoot, keeps the model closer to its start.
  const two_tasks strong("fed-ewc", {{"ewc_lambda", "5"}, {"fisher_max", "1"}}, "mlp");
  CHECK((strong.after[1] - strong.after[0]).norm().item<double>() <
        (finetune.after[1] - finetune.after[0]).norm().item<double>());
}

TEST_CASE("Fisher information is the bounded mean over batches of squared gradients", "[ewc]") {
  const two_tasks run("fed-ewc", {{"fisher_max", "0.002"}});
  CHECK_FALSE(run.uploads[0]->find("fisher")); // not the last round of the task
  CHECK_FALSE(run.uploads[3]->find("fisher")); // and not the last task
  const auto fisher = run.uploads[1]->at("fisher");
  CHECK(fisher.max().item<float>() <= 0.002F);
  // The same by autograd, over the batches in the order of training.
  const auto rows = striped_rows(32, features, classes);
  std::vector<std::int64_t> mine;
  for (std::int64_t r = 0; r < 32; ++r)
    if (r % classes < 2)
      mine.push_back(r);
  auto order = mine;
  rng_stream(key_for({.seed = 1}, purpose::shuffle)).shuffle(std::span(order));
  const auto start = run.uploads[1]->at(flat_weights);
  auto expected = at::zeros({16});
  for (std::size_t first = 0; first < order.size(); first += 4) {
    std::vector<at::Tensor> x;
    std::vector<std::int64_t> y;
    for (std::size_t i = first; i < first + 4; ++i) {
      x.push_back(rows->images[order[i]].flatten().to(at::kFloat) / 255.0 - 0.5);
      y.push_back(order[i] % classes);
    }
    const auto flat = start.clone().set_requires_grad(true);
    const auto logits =
        at::linear(at::stack(x), flat.narrow(0, 0, 12).view({4, 3}), flat.narrow(0, 12, 4)).narrow(1, 0, 2);
    at::cross_entropy_loss(logits, at::tensor(y, at::kLong)).backward();
    expected += flat.grad().square() / 4.0;
  }
  CHECK(at::allclose(fisher, expected.clamp_max(0.002), 1e-4, 1e-8));
  CHECK(at::equal(run.extras[2]->at("fisher"), fisher)); // one client; no information before task 1
  CHECK(at::equal(run.extras[2]->at("anchor"), run.after[0]));
}

TEST_CASE("Fed-LwF equals FedAvg in the first task, then distills from the model at the start of the task", "[lwf]") {
  const two_tasks fedavg("fedavg"), lwf("fed-lwf");
  CHECK(at::equal(lwf.after[0], fedavg.after[0]));
  CHECK_FALSE(lwf.extras[1]);
  CHECK(at::equal(lwf.extras[2]->at(flat_weights), lwf.after[0]));
  CHECK(at::equal(lwf.extras[3]->at(flat_weights), lwf.after[0]));
  // Without distillation the loss covers only the new classes: the old head rows stay unchanged.
  const two_tasks finetune("finetune"), untaught("fed-lwf", {{"distillation_weight", "0"}});
  CHECK(at::allclose(untaught.after[1], finetune.after[1], 1e-5, 1e-6));
  const auto old_rows = [](const at::Tensor& flat) { return flat.narrow(0, 0, 6); };
  CHECK_FALSE(at::equal(old_rows(lwf.after[1]), old_rows(lwf.after[0])));
}

TEST_CASE("where student and teacher agree, the distillation loss is the teacher's entropy and has no gradient",
          "[lwf]") {
  const auto method = strategy_named("fed-lwf");
  method->prepare(setup_of());
  const auto net = setup_of().net;
  const auto weights = initial_weights(*net, 2);
  const auto rows = striped_rows(8, features, classes);
  broadcast in{.info = {.task = {1}, .seen_classes = {0, 4}, .current_classes = {2, 4}},
               .weights = weights_only(weights),
               .extra = weights_only(weights)};
  client_round_runner run(*method,
                          {.in = std::make_shared<const broadcast>(in), .samples = view_of(rows, {2, 3, 6, 7})});
  auto step = run.start();
  const auto job = std::get<train_job>(std::get<plan>(step).at(0));
  REQUIRE((job.options.teachers.at(0).classes == class_range{0, 2}));
  const auto logits = at::randn({1, 4, 4}), weight = at::full({1, 4}, 0.25);
  const auto labels = at::full({1, 4}, 3, at::kLong);
  const auto teacher = logits.narrow(2, 0, 2).contiguous();
  const auto out = (*job.objective)({.logits = logits,
                                     .features = logits,
                                     .labels = labels,
                                     .row_weight = weight,
                                     .auxiliaries = {},
                                     .teachers = {{.logits = teacher}}});
  CHECK(out.d_logits.narrow(2, 0, 2).abs().max().item<double>() < 1e-7);
  const auto p = at::softmax(teacher / 2.0, 2);
  const auto entropy = -(p * p.log()).sum(2).mean().item<double>();
  const auto plain = at::cross_entropy_loss(logits[0].narrow(1, 2, 2), at::full({4}, 1, at::kLong)).item<double>();
  CHECK_THAT(out.values.item<double>(), Catch::Matchers::WithinRel(plain + 3.0 * entropy, 1e-5));
}

TEST_CASE("a client whose task has no earlier classes uses no teacher and trains as in FedAvg", "[lwf]") {
  const auto method = strategy_named("fed-lwf");
  method->prepare(setup_of());
  const auto weights = weights_only(initial_weights(*setup_of().net, 2));
  for (const class_range current : {class_range{0, 4}, class_range{0, 2}}) { // domains; a client still in task 1
    broadcast in{.info = {.task = {1}, .seen_classes = {0, 4}, .current_classes = current},
                 .weights = weights,
                 .extra = weights};
    const auto sent = std::make_shared<const broadcast>(in);
    client_round_runner run(*method,
                            {.in = sent, .samples = view_of(striped_rows(8, features, classes), {0, 1, 4, 5})});
    auto step = run.start();
    const auto job = std::get<train_job>(std::get<plan>(step).at(0));
    CHECK(job.teachers.empty());
    CHECK(job.objective->identity() == cross_entropy_objective()->identity());
  }
}

TEST_CASE("Fisher information of rows is the mean of their squared gradients", "[ewc]") {
  const two_tasks run("fed-ewc", {{"fisher", "sample"}, {"fisher_max", "100"}});
  const auto fisher = run.uploads[1]->at("fisher"), start = run.uploads[1]->at(flat_weights);
  const auto rows = striped_rows(32, features, classes);
  auto expected = at::zeros({16});
  for (std::int64_t r = 0; r < 32; ++r) {
    if (r % classes >= 2)
      continue;
    const auto flat = start.clone().set_requires_grad(true);
    const auto x = rows->images[r].flatten().to(at::kFloat) / 255.0 - 0.5;
    const auto logits = at::linear(x.unsqueeze(0), flat.narrow(0, 0, 12).view({4, 3}), flat.narrow(0, 12, 4));
    at::cross_entropy_loss(logits.narrow(1, 0, 2), at::full({1}, r % classes, at::kLong)).backward();
    expected += flat.grad().square() / 16.0;
  }
  CHECK(at::allclose(fisher, expected, 1e-4, 1e-9));
  CHECK_FALSE(at::allclose(fisher, two_tasks("fed-ewc", {{"fisher_max", "100"}}).uploads[1]->at("fisher"), 1e-2, 1e-9));
}

TEST_CASE("with one client FedAvg keeps the client's model, and FedProx with mu = 0 is FedAvg", "[fedprox]") {
  const two_tasks fedavg("fedavg"), free("fedprox", {{"mu", "0"}}), held("fedprox", {{"mu", "0.5"}});
  CHECK(at::equal(fedavg.after[0], fedavg.uploads[1]->at(flat_weights)));
  CHECK(at::equal(fedavg.after[1], fedavg.uploads[3]->at(flat_weights)));
  CHECK(at::allclose(free.after[1], fedavg.after[1], 1e-6, 1e-7));
  CHECK_FALSE(at::allclose(held.after[1], fedavg.after[1], 1e-3, 1e-4));
}

TEST_CASE("FedDyn accumulates clients' changes and subtracts them from the model that it sends", "[dyn]") {
  const two_tasks fedavg("fedavg"), free("fed-dyn", {{"alpha", "0"}}), dyn("fed-dyn", {{"alpha", "0.5"}});
  CHECK(at::allclose(free.after[1], fedavg.after[1], 1e-6, 1e-7));
  CHECK_FALSE(at::allclose(dyn.after[1], fedavg.after[1], 1e-3, 1e-4));
  // One client: h and g are both -alpha times its changes so far, and the model minus h
  // alpha is sent.
  const auto flat = [](const tensors_ref& map) { return map->at(flat_weights); };
  auto moved = at::zeros({16});
  for (std::size_t round = 0; round < 4; ++round) {
    moved += flat(dyn.uploads[round]) - flat(dyn.sent[round]);
    CHECK(at::allclose(dyn.memories[round]->at("drift"), -0.5 * moved, 1e-5, 1e-6));
    if (round < 3)
      CHECK(at::allclose(flat(dyn.sent[round + 1]), flat(dyn.uploads[round]) + moved, 1e-5, 1e-6));
  }
  CHECK(at::equal(dyn.after[0], flat(dyn.uploads[1]))); // the mean is evaluated
  const two_tasks reset("fed-dyn", {{"alpha", "0.5"}, {"reset", "true"}});
  const auto within = flat(reset.uploads[2]) - flat(reset.sent[2]);
  CHECK(at::allclose(reset.memories[2]->at("drift"), -0.5 * within, 1e-5, 1e-6));
}

TEST_CASE("FedDyn's loss adds the gradient alpha (w - start) - g to the plain one", "[dyn]") {
  const auto method = strategy_named("fed-dyn");
  give_keys(*method, {{"alpha", "0.25"}});
  method->prepare(setup_of());
  auto memory = std::make_shared<tensor_map>();
  memory->put("drift", at::arange(16, at::kFloat));
  memory->put("task", at::zeros({1}, at::kLong));
  broadcast in{.info = {.seen_classes = {0, 4}}, .weights = weights_only(initial_weights(*setup_of().net, 2))};
  client_round_runner run(*method, {.in = std::make_shared<const broadcast>(in),
                                    .memory = memory,
                                    .samples = view_of(striped_rows(8, features, classes), {0, 1, 2, 3})});
  auto step = run.start();
  const auto job = std::get<train_job>(std::get<plan>(step).at(0));
  REQUIRE(job.objective->regularizes());
  auto gradients = at::ones({3});
  const auto w = at::full({3}, 2.0F), start = at::full({3}, 1.0F);
  job.objective->regularize(w, start, 4, job.auxiliary.get(), gradients);
  CHECK(at::allclose(gradients, at::tensor({1.25F - 4.0F, 1.25F - 5.0F, 1.25F - 6.0F})));
}

TEST_CASE("FedET regularizes clients by the importance that they have sent", "[et]") {
  const two_tasks fedavg("fedavg"), et("fed-et"), free("fed-et", {{"own_weight", "0"}, {"others_weight", "0"}});
  CHECK(at::equal(et.after[0], fedavg.after[0]));
  CHECK(at::allclose(free.after[1], fedavg.after[1], 1e-6, 1e-7));
  CHECK_FALSE(at::equal(et.after[1], fedavg.after[1]));
  CHECK_FALSE(et.uploads[0]->find("importance"));
  const auto importance = et.uploads[1]->at("importance");
  CHECK(et.uploads[1]->bytes() == 2 * 16 * 4); // two tensors of the model's size
  CHECK_FALSE(et.uploads[3]->find("importance"));
  // One client has sent importance, so the server's pair is the client's.
  CHECK(at::allclose(et.extras[2]->at("importance"), importance, 1e-6, 1e-10));
  CHECK(at::allclose(et.extras[2]->at("weighted_model"), et.uploads[1]->at(flat_weights), 1e-5, 1e-6));
  CHECK(at::equal(et.memories[2]->at("own_model"), et.uploads[1]->at(flat_weights)));
  const auto within = [&](const char* weight) {
    const two_tasks run("fed-et", {{"own_weight", weight}, {"others_weight", weight}, {"importance_max", "1"}}, "mlp");
    return (run.after[1] - run.after[0]).norm().item<double>();
  };
  CHECK(within("1") < within("0"));
}

TEST_CASE("FedET's enhancers need a frozen net and distill from those of the previous task", "[et]") {
  auto method = strategy_named("fed-et");
  give_keys(*method, {{"variant", "enhancer"}});
  const auto errors = method->check(setup_of("mlp"));
  REQUIRE(errors.size() == 1);
  CHECK(errors.front().where == "strategy.variant");
  auto frozen = setup_of("mlp");
  frozen.trainable = trainable_part::head;
  CHECK(method->check(frozen).empty());
  // A linear net is only a head, so the variant "enhancer" equals Fed-LwF with another weight.
  const two_tasks enhancer("fed-et", {{"variant", "enhancer"}, {"distillation_weight", "3"}}), lwf("fed-lwf");
  CHECK(at::equal(enhancer.after[1], lwf.after[1]));
}

TEST_CASE("FedIL+ equals Fed-LwF with prototypes that the server replays to the head", "[il+]") {
  const two_tasks lwf("fed-lwf"), silent("fed-il-plus", {{"replayed", "0"}, {"distillation_weight", "3"}});
  CHECK(at::equal(silent.after[1], lwf.after[1]));
  const two_tasks plus("fed-il-plus", {}, "mlp");
  // Sent once, in the first round of each task: 2 classes of 100 features, twice, with class and count.
  for (const std::size_t round : {0, 2}) {
    const auto& upload = *plus.uploads[round];
    CHECK((upload.at("prototypes.means").sizes() == at::IntArrayRef{2, 100}));
    CHECK(upload.bytes() - upload.at(flat_weights).nbytes() == 2 * (2 * 100 * 4 + 8));
    CHECK(plus.uploads[round + 1]->size() == 1);
  }
  CHECK(at::equal(plus.uploads[2]->at("prototypes.classes"), at::tensor({2, 3}, at::kInt)));
  CHECK(at::equal(plus.uploads[2]->at("prototypes.counts"), at::tensor({8, 8}, at::kInt)));
  CHECK(plus.server->summary_metrics().at("prototypes") == 4.0);
  // The body comes from clients; the head was also trained by the server.
  const auto net = model_named("mlp", {1, 1, features}, classes);
  bool body = true, head = false;
  for (const auto& entry : net->layout()) {
    const auto same = at::equal(plus.after[1].narrow(0, entry.offset, entry.size),
                                plus.uploads[3]->at(flat_weights).narrow(0, entry.offset, entry.size));
    (entry.head ? head : body) = entry.head ? head || !same : body && same;
  }
  CHECK(body);
  CHECK(head);
}

TEST_CASE("FedIL+ replays features with the mean and variance that were sent", "[il+]") {
  // A linear net's features are its inputs.
  const auto rows = striped_rows(32, features, classes);
  const two_tasks plus("fed-il-plus");
  const auto x = (rows->images.flatten(1).to(at::kFloat) / 255.0 - 0.5);
  const auto& means = plus.uploads[2]->at("prototypes.means");
  for (std::int64_t c = 2; c < 4; ++c) {
    const auto own = x.index_select(0, (at::arange(32) % classes == c).nonzero().flatten());
    CHECK(at::allclose(means[c - 2], own.mean(0), 1e-4, 1e-5));
    CHECK(at::allclose(plus.uploads[2]->at("prototypes.variances")[c - 2], own.var(0, /*unbiased=*/false), 1e-4, 1e-5));
  }
}
