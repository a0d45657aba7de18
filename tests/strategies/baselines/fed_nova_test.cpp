// FedNova: weights of steps, uploads of clients, and the server's step, by hand.
#include "tests/support/shown_steps.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

constexpr std::int64_t features = 3, classes = 4, size = (features + 1) * classes;

struct federation {
  std::unique_ptr<strategy> method = strategy_named("fed-nova");
  std::unique_ptr<executor> device = make_executor("cpu");
  method_setup setup = setup_of_run(model_named("linear", {1, 1, features}, classes), features, 2);
  std::unique_ptr<server_half> server;

  explicit federation(const key_list& keys, double momentum = 0.0) {
    give_keys(*method, keys.pairs);
    setup.training = {.epochs = 1, .batch = 4, .learning_rate = 0.2, .momentum = momentum};
    method->prepare(setup);
    server = method->make_server();
  }
  /// Round of a client with this number of rows.
  [[nodiscard]] client_result round(std::int64_t rows) const {
    std::vector<std::int64_t> own;
    for (std::int64_t row = 0; row < rows; ++row)
      own.push_back(row);
    auto in = server->open_round({});
    in.info = {.seen_classes = {0, classes}, .current_classes = {0, classes}};
    return run_round(*method, *device,
                     {.in = std::make_shared<const broadcast>(in),
                      .samples = view_of(striped_rows(32, features, classes), own),
                      .seed = 1});
  }
  void fold(double moved, double weight, double steps, std::int64_t rows) const {
    auto upload = std::make_shared<tensor_map>();
    upload->put(flat_weights, at::full({size}, moved, at::kFloat));
    upload->put("steps", at::tensor({weight, steps}, at::kDouble));
    server->fold({.upload = upload, .rows = rows});
  }
  /// Change of the server's weights if all weights change equally.
  [[nodiscard]] double step() const {
    const auto before = server->predict().weights->at(flat_weights).clone();
    job_channel channel;
    server_context ctx(channel);
    run_step(server->close_round(ctx, {}), channel, *device);
    return (before - server->predict().weights->at(flat_weights)).mean().item<double>();
  }
};

double weight_in(const client_result& result) { return result.upload->at("steps")[0].item<double>(); }

} // namespace

TEST_CASE("steps weigh 1, with momentum by their later effect, with a proximal term decreasingly", "[nova]") {
  CHECK(weight_in(federation({}).round(12)) == 3.0);
  CHECK(weight_in(federation({}).round(13)) == 4.0); // the short step counts
  CHECK_THAT(weight_in(federation({}, 0.5).round(12)), WithinRel(1.0 + 1.5 + 1.75, 1e-12));
  CHECK_THAT(weight_in(federation({{"mu", "0.5"}}).round(12)), WithinRel(1.0 + 0.9 + 0.81, 1e-12));
  CHECK(federation({}, 0.5).round(12).upload->at("steps")[1].item<double>() == 3.0);
}

TEST_CASE("a client sends its change divided by the weight of its steps", "[nova]") {
  const federation one({}, 0.5);
  auto plain = strategy_named("fedavg");
  plain->prepare(one.setup);
  auto in = one.server->open_round({});
  in.info = {.seen_classes = {0, classes}, .current_classes = {0, classes}};
  const auto learned = run_round(*plain, *one.device,
                                 {.in = std::make_shared<const broadcast>(in),
                                  .samples = view_of(striped_rows(32, features, classes), {0, 1, 2, 3, 4, 5, 6, 7}),
                                  .seed = 1});
  const auto moved = in.weights->at(flat_weights) - learned.upload->at(flat_weights);
  CHECK(largest_difference(one.round(8).upload->at(flat_weights), moved / 2.5) < 1e-7);
}

TEST_CASE("the server's change is tau_eff times the mean of the uploads", "[nova]") {
  // Rows 1 and 3: mean 0.25 * 0.8 + 0.75 * 0.4 = 0.5.
  const auto step = [](const key_list& keys) {
    const federation two(keys);
    two.fold(0.8, 2.0, 10.0, 1);
    two.fold(0.4, 4.0, 20.0, 3);
    two.fold(99.0, 9.0, 9.0, 0); // trained on no rows
    return two.step();
  };
  CHECK_THAT(step({{"effective_steps", "weights"}}), WithinRel(0.5 * 3.5, 1e-5));
  CHECK_THAT(step({{"effective_steps", "steps"}}), WithinRel(0.5 * 17.5, 1e-5));
  CHECK_THAT(step({}), WithinRel(0.5 * 3.5, 1e-5));
  CHECK_THAT(step({{"mu", "0.1"}}), WithinRel(0.5 * 17.5, 1e-5));
}

TEST_CASE("slow momentum keeps a part of earlier steps", "[nova]") {
  const federation one({{"server_momentum", "0.5"}});
  one.fold(0.5, 2.0, 2.0, 4);
  CHECK_THAT(one.step(), WithinRel(1.0, 1e-5));
  one.fold(0.5, 2.0, 2.0, 4);
  CHECK_THAT(one.step(), WithinRel(1.5, 1e-5));
  CHECK(one.step() == 0.0); // no upload was received
}

TEST_CASE("Adam, and a proximal term that overshoots, are refused", "[nova]") {
  federation one({{"mu", "6"}});
  one.setup.training.optimizer = optimizer_kind::adamw;
  const auto errors = one.method->check(one.setup);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].where == "training.optimizer");
  CHECK(errors[1].text == "strategy.mu = 6: with training.learning_rate = 0.2 a step would overshoot the received "
                          "model; expected a product below 1");
  CHECK(one.method->needs().round_barrier);
}

TEST_CASE("a server momentum without a learning rate is refused: its step is 0 / 0", "[nova]") {
  const auto findings = [](double momentum, double rate) {
    federation run({{"server_momentum", std::to_string(momentum)}});
    run.setup.training.learning_rate = rate;
    return run.method->check(run.setup);
  };
  CHECK(findings(0.5, 0.1).empty());
  CHECK(findings(0.0, 0.0).empty());
  const auto errors = findings(0.5, 0.0);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].where == "strategy.server_momentum");
  CHECK(errors[0].text.find("divided by training.learning_rate, which is 0") != std::string::npos);
}
