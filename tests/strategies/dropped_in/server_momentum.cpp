// FedAvgM: T. Hsu, H. Qi and M. Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
// Classification", 2019. An example of a method in one file. Its scenario is in the same folder, and only
// tests/tools/dropped_in_test.py names it. conformance_test.cpp tests it like all methods.
#include "strategies/shared/averaging.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>
namespace mneme {
namespace {

struct options {
  double momentum = 0.9;
};

/// Uses the mean change of the clients as a gradient, and takes a step with momentum.
class server final : public averaging_server {
public:
  server(const method_setup& setup, const options& options)
      : averaging_server(setup), options_(options), velocity_(at::zeros_like(weights())) {}
  task<void> close_round(server_context&, const round_info&) override {
    const auto before = weights();
    average();
    velocity_ = options_.momentum * velocity_ + (weights() - before); // v <- beta v + Delta w
    set_weights(before + velocity_);                                  // w <- w + v
    co_return;
  }
  std::map<std::string, double> summary_metrics() const override { return {{"momentum", options_.momentum}}; }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(velocity_);
  }

private:
  options options_;
  at::Tensor velocity_; // [P]
};

class server_momentum final : public strategy {
public:
  void keys(key_table& table) override {
    table.number("server_momentum", options_.momentum, {.low = 0.0, .high = 1.0},
                 "beta: momentum of the server's step.");
  }
  std::vector<preset> presets() const override {
    return {{"plain", "FedAvg", "[strategy]\nserver_momentum = 0.0\n[rounds]\nper_task = 1\n"}};
  }
  method_needs needs() const override {
    return {.upload_size_known = true, .defaults = "[training]\nlearning_rate = 0.02\n"};
  }
  diagnostics check(const method_setup& setup) const override {
    if (setup.trainable == trainable_part::all)
      return {};
    return {{"model.trainable", "model.trainable = \"head\": the velocity is one of all weights; expected \"all\""}};
  }
  void prepare(const method_setup& setup) override { setup_ = setup; }

  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    auto training =
        ctx.train(local_training(setup_, ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes}));
    auto trained = co_await training;
    co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = trained.rows_seen};
  }
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<server>(setup_, options_); }

private:
  method_setup setup_;
  options options_;
};

const strategy_registration line{
    {.name = "server-momentum",
     .summary = "FedAvg with momentum on the server (Hsu et al. 2019)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<server_momentum>(); }}};

} // namespace
} // namespace mneme
