// Server steps of FedAdam and FedYogi by hand, with one upload whose weights all changed by the same amount.
#include "runtime/base/archive.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinRel;

namespace {

struct server {
  std::unique_ptr<strategy> method;
  std::unique_ptr<executor> device = make_executor("cpu");
  std::unique_ptr<server_half> half;
  at::Tensor before;

  server(const std::string& name, const key_list& keys, rounds_section rounds = {}) : method(strategy_named(name)) {
    give_keys(*method, keys.pairs);
    auto setup = setup_of_run(model_named("linear", {1, 1, 2}, 3), 2, 1);
    setup.initial = weights_only(at::zeros({9}));
    setup.rounds = std::move(rounds);
    method->prepare(setup);
    half = method->make_server();
  }
  /// Change of the server's weights after an upload whose weights differ from the server's by this amount.
  double step(double moved) {
    before = half->predict().weights->at(flat_weights);
    half->fold({.upload = weights_only(before + moved), .rows = 5, .start = weights_only(before)});
    return closed();
  }
  double closed() {
    job_channel channel;
    server_context ctx(channel);
    run_step(half->close_round(ctx, {}), channel, *device);
    const auto went = half->predict().weights->at(flat_weights) - before;
    CHECK((went - went[0]).abs().max().item<double>() == 0.0);
    return went[0].item<double>();
  }
};

const key_list halves{{"server_learning_rate", "0.5"}, {"beta_1", "0.5"}, {"beta_2", "0.75"}, {"tau", "0.25"}};

} // namespace

TEST_CASE("FedAdam's step is eta m / (sqrt(v) + tau), starting from v = tau squared", "[adaptive]") {
  server adam("fed-adam", halves);
  double m = 0.0, v = 0.0625;
  for (const double moved : {0.5, -0.25, 0.125}) {
    m = 0.5 * m + 0.5 * moved;
    v = 0.75 * v + 0.25 * moved * moved;
    CHECK_THAT(adam.step(moved), WithinRel(0.5 * m / (std::sqrt(v) + 0.25), 1e-5));
  }
}

TEST_CASE("FedYogi changes v only by the sign of its distance to the square", "[adaptive]") {
  server yogi("fed-yogi", halves);
  double m = 0.0, v = 0.0625;
  for (const double moved : {0.5, -0.125, 0.125}) { // the square is larger, then smaller
    const double square = moved * moved;
    m = 0.5 * m + 0.5 * moved;
    v = v - 0.25 * square * (v > square ? 1.0 : -1.0);
    CHECK_THAT(yogi.step(moved), WithinRel(0.5 * m / (std::sqrt(v) + 0.25), 1e-5));
  }
}

TEST_CASE("early steps can be corrected for moments that start at zero", "[adaptive]") {
  auto keys = halves;
  keys.pairs.emplace_back("second_moment", "zero");
  keys.pairs.emplace_back("bias_correction", "true");
  server adam("fed-adam", keys);
  const double rate = 0.5 * std::sqrt(1.0 - 0.75 * 0.75) / (1.0 - 0.5 * 0.5);
  CHECK_THAT(adam.step(0.5), WithinRel(rate * 0.25 / (std::sqrt(0.25 * 0.25) + 0.25), 1e-5));
}

TEST_CASE("a round without uploads changes nothing", "[adaptive]") {
  server adam("fed-adam", halves);
  (void)adam.step(0.5);
  adam.before = adam.half->predict().weights->at(flat_weights);
  CHECK(adam.closed() == 0.0);
}

TEST_CASE("asynchronous steps use the mean of the buffer", "[adaptive]") {
  rounds_section async;
  async.mode = round_mode::async;
  server yogi("fed-yogi", halves, async);
  const auto start = yogi.half->predict().weights;
  yogi.before = start->at(flat_weights);
  for (const double moved : {0.25, 0.75})
    yogi.half->fold({.upload = weights_only(at::full({9}, moved)), .rows = 5, .start = start});
  const double v = 0.0625 + 0.25 * 0.25;
  CHECK_THAT(yogi.closed(), WithinRel(0.5 * 0.25 / (std::sqrt(v) + 0.25), 1e-5));
}

TEST_CASE("a server that was saved between steps continues with its moments", "[adaptive]") {
  server here("fed-yogi", halves), there("fed-yogi", halves);
  (void)here.step(0.5);
  archive saved;
  here.half->persist(saved);
  const auto bytes = saved.contents();
  archive loaded(bytes, 0, bytes->size());
  there.half->persist(loaded);
  CHECK(here.step(0.25) == there.step(0.25));
}
