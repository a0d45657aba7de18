// SCAFFOLD's control variates by hand: client memory and uploads, the server's step, and refused settings.
#include "runtime/method/transfer_encoding.hpp"
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t features = 3, classes = 4, size = (features + 1) * classes;

method_setup setup_of(std::int64_t clients = 4) {
  auto setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, 2);
  setup.training = {.epochs = 2, .batch = 3, .learning_rate = 0.2};
  setup.clients = clients;
  setup.weighting = upload_weighting::uniform;
  return setup;
}

struct lone_client {
  std::unique_ptr<strategy> method = strategy_named("scaffold");
  std::unique_ptr<executor> device = make_executor("cpu");
  std::unique_ptr<server_half> server;

  explicit lone_client(const key_list& keys = {}) {
    give_keys(*method, keys.pairs);
    method->prepare(setup_of());
    server = method->make_server();
  }
  /// Broadcast of the first round with another c.
  [[nodiscard]] broadcast sent(double control) const {
    auto in = server->open_round({});
    in.info = {.seen_classes = {0, classes}, .current_classes = {0, classes}};
    auto extra = std::make_shared<tensor_map>();
    extra->put("control.weights", at::full({size}, control, at::kFloat));
    in.extra = extra;
    return in;
  }
  /// Eight rows: three steps per epoch.
  [[nodiscard]] assignment work(const broadcast& in, memory_ref memory = nullptr) const {
    return {.in = std::make_shared<const broadcast>(in),
            .memory = std::move(memory),
            .samples = view_of(striped_rows(8, features, classes), {0, 1, 2, 3, 4, 5, 6, 7}),
            .seed = 1};
  }
};

memory_ref remembered(double control, std::int64_t task = 0) {
  auto made = std::make_shared<tensor_map>();
  made->put("control", at::full({size}, control, at::kFloat));
  made->put("task", at::full({1}, task, at::kLong));
  return made;
}

tensors_ref upload_of(double weight, double change) {
  auto made = std::make_shared<tensor_map>();
  made->put(flat_weights, at::full({size}, weight, at::kFloat));
  made->put("control.weights", at::full({size}, change, at::kFloat));
  return made;
}

double control_of(server_half& server, const round_info& info = {}) {
  return server.open_round(info).extra->at("control.weights")[5].item<double>();
}

void close(server_half& server) {
  const auto device = make_executor("cpu");
  job_channel channel;
  server_context ctx(channel);
  run_step(server.close_round(ctx, {}), channel, *device);
}

} // namespace

TEST_CASE("every step is corrected by c - c_i", "[scaffold]") {
  const lone_client client;
  const auto jobs = jobs_of_kind<train_job>(
      jobs_of_round(*client.method, *client.device, client.work(client.sent(0.75), remembered(0.5))));
  REQUIRE(jobs.size() == 1);
  REQUIRE(jobs[0].objective->regularizes());
  auto gradients = floats({1.0F, 2.0F});
  jobs[0].objective->regularize(floats({9.0F, 9.0F}), floats({8.0F, 8.0F}), 3, jobs[0].auxiliary.get(), gradients);
  CHECK(at::equal(gradients, floats({1.25F, 2.25F})));
}

TEST_CASE("a control variate by option II is c_i - c + (x - y_i) / (K eta), and its change is sent", "[scaffold]") {
  const lone_client client;
  const auto in = client.sent(0.25);
  const auto result = run_round(*client.method, *client.device, client.work(in, remembered(0.5)));
  const auto moved = in.weights->at(flat_weights) - result.upload->at(flat_weights);
  const auto expected = 0.5 - 0.25 + moved / (6 * 0.2); // two epochs of three steps
  CHECK(largest_difference(result.memory->at("control"), expected) < 1e-6);
  CHECK(largest_difference(result.upload->at("control.weights"), expected - 0.5) < 1e-6);
  CHECK(result.memory->at("task").item<std::int64_t>() == 0);
}

TEST_CASE("a control variate by option I is the gradient over all rows at the received model", "[scaffold]") {
  const lone_client client({{"control", "I"}});
  const auto in = client.sent(0.25);
  const auto result = run_round(*client.method, *client.device, client.work(in, remembered(0.5)));
  const auto flat = in.weights->at(flat_weights).clone().set_requires_grad(true);
  const auto rows = striped_rows(8, features, classes);
  const auto x = rows->images.view({8, features}).to(at::kFloat) / 255.0 - 0.5;
  const auto y = at::tensor(std::vector<std::int64_t>{0, 1, 2, 3, 0, 1, 2, 3}, at::kLong);
  const auto logits = at::linear(x, flat.narrow(0, 0, 12).view({4, 3}), flat.narrow(0, 12, 4));
  at::cross_entropy_loss(logits, y).backward();
  CHECK(largest_difference(result.memory->at("control"), flat.grad().contiguous()) < 1e-6);
  CHECK(largest_difference(result.upload->at("control.weights"), flat.grad() - 0.5) < 1e-6);
}

TEST_CASE("two vectors are sent in each direction", "[scaffold]") {
  const lone_client client;
  const auto in = client.server->open_round({});
  CHECK(wire_bytes(in.weights.get(), wire_format::fp32) + wire_bytes(in.extra.get(), wire_format::fp32) ==
        2 * size * 4);
  const auto upload = run_round(*client.method, *client.device, client.work(client.sent(0.0))).upload;
  CHECK(wire_bytes(upload.get(), wire_format::fp32) == 2 * size * 4);
  CHECK(client.server->summary_metrics().at("paper_params") == 2.0 * size * setup_of().rounds.per_task);
}

TEST_CASE("the server changes c by |S| clients' changes over all N, and its model by eta_g", "[scaffold]") {
  const lone_client client({{"server_learning_rate", "0.5"}});
  auto& server = *client.server;
  const auto before = server.predict().weights->at(flat_weights).clone();
  server.fold({.upload = upload_of(1.0, 3.0), .rows = 7});
  server.fold({.upload = upload_of(2.0, 5.0), .rows = 1});
  server.fold({.upload = upload_of(99.0, 99.0), .rows = 0}); // trained on no rows
  close(server);
  CHECK(largest_difference(server.predict().weights->at(flat_weights), before + (1.5 - before) * 0.5) < 1e-6);
  CHECK(control_of(server) == (3.0 + 5.0) / 4.0);
  server.fold({.upload = upload_of(1.0, -4.0), .rows = 7});
  close(server);
  CHECK(control_of(server) == 2.0 - 4.0 / 4.0);
}

TEST_CASE("control variates persist across tasks unless they are reset", "[scaffold]") {
  for (const bool reset : {false, true}) {
    INFO(reset);
    const lone_client client({{"reset", reset ? "true" : "false"}});
    auto& server = *client.server;
    const auto device = make_executor("cpu");
    job_channel channel;
    server_context ctx(channel);
    const auto begin = [&](const round_info& info) { (void)run_step(server.open_task(ctx, info), channel, *device); };
    begin({});
    server.fold({.upload = upload_of(1.0, 4.0), .rows = 1});
    close(server);
    begin({.round = {5}, .task = {1}});
    CHECK(control_of(server) == (reset ? 0.0 : 1.0));
    server.fold({.started_from = {4}, .upload = upload_of(1.0, 8.0), .rows = 1}); // a late one of the previous task
    close(server);
    CHECK(control_of(server) == (reset ? 0.0 : 3.0));

    auto in = client.sent(0.0);
    in.info.task = {1};
    const auto result = run_round(*client.method, *client.device, client.work(in, remembered(0.5)));
    const auto moved = (in.weights->at(flat_weights) - result.upload->at(flat_weights)) / 1.2;
    CHECK(largest_difference(result.memory->at("control"), reset ? moved : moved + 0.5) < 1e-6);
  }
}

TEST_CASE("a client without training keeps its control variate", "[scaffold]") {
  const lone_client client;
  auto still = setup_of();
  still.training.epochs = 0;
  client.method->prepare(still);
  const auto result = run_round(*client.method, *client.device, client.work(client.sent(0.25), remembered(0.5)));
  CHECK(at::equal(result.memory->at("control"), at::full({size}, 0.5F)));
  CHECK(at::equal(result.upload->at("control.weights"), at::zeros({size})));
}

TEST_CASE("option II is refused if a client's change is not a sum of gradients", "[scaffold]") {
  auto setup = setup_of();
  setup.training.optimizer = optimizer_kind::adam;
  setup.training.momentum = 0.9;
  setup.training.clip_norm = 1.0;
  const lone_client second, first({{"control", "I"}});
  const auto errors = second.method->check(setup);
  REQUIRE(errors.size() == 3);
  CHECK(errors[0].where == "training.optimizer");
  CHECK(errors[1].where == "training.momentum");
  CHECK(errors[1].text == "training.momentum = 0.9: strategy.control = \"II\" reads a client's change of weights as a "
                          "sum of gradients; expected 0, or strategy.control = \"I\"");
  CHECK(errors[2].where == "training.clip_norm");
  CHECK(first.method->check(setup).empty());
  CHECK(second.method->check(setup_of()).empty());
  CHECK(second.method->needs().round_barrier); // which rounds.mode = "async" does not have
}
