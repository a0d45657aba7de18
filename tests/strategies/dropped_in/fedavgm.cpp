// FedAvgM: T. Hsu, H. Qi and M. Brown, "Measuring the Effects of Non-Identical Data Distribution for Federated Visual
// Classification", 2019.
#include "runtime/base/archive.hpp"
#include "runtime/method/strategy.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/ATen.h>
namespace mneme {
namespace {

struct options {
  double server_momentum = 0.9;
};

/// Uses the mean change of the clients as a gradient, and takes a step with momentum.
class fedavgm_server final : public server_half {
public:
  fedavgm_server(const method_setup& setup, options chosen)
      : net_(setup.net), options_(chosen), weights_(setup.initial->at(flat_weights)),
        velocity_(at::zeros_like(weights_)) {}

  broadcast open_round(const round_info&) override {
    return {.info = {}, .weights = weights_only(weights_), .extra = nullptr, .initial_payload = nullptr};
  }
  void fold(const delivery& in) override { mean_.add(in.upload->at(flat_weights), static_cast<double>(in.rows)); }
  task<void> close_round(server_context&, const round_info&) override {
    velocity_ = options_.server_momentum * velocity_ + (mean_.take() - weights_);
    weights_ = weights_ + velocity_;
    co_return;
  }
  predictor predict() const override { return {.net = net_, .weights = weights_only(weights_)}; }
  void persist(archive& state) override { state(weights_)(velocity_)(mean_); } // to and from a checkpoint

private:
  model_ref net_;
  options options_;
  at::Tensor weights_, velocity_; // [P]
  weighted_average mean_;         // in float64, in order of arrival
};

class fedavgm final : public strategy {
public:
  void keys(key_table& table) override {
    table.number("server_momentum", options_.server_momentum, {.low = 0.0, .high = 1.0},
                 "Momentum of the server's step.");
  }
  void prepare(const method_setup& setup) override { setup_ = setup; }
  method_needs needs() const override { return {.upload_size_known = true}; } // one job, then weights

  task<client_result> client_round(client_context& ctx, const broadcast& in) const override {
    const auto local = options_for_round(setup_.training, setup_.trainable, in.info.seen_classes, in.info.round_of_task,
                                         in.info.rounds_of_task);
    auto training = ctx.train({.net = setup_.net,
                               .start = in.weights,
                               .samples = ctx.samples(),
                               .objective = cross_entropy_objective(),
                               .auxiliary = nullptr,
                               .options = local,
                               .stream = ctx.training_stream()});
    auto trained = co_await training; // a named object, alone in its statement
    co_return client_result{.upload = trained.weights, .memory = nullptr, .rows = trained.rows_seen};
  }
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<fedavgm_server>(setup_, options_);
  }

private:
  method_setup setup_;
  options options_;
};

const strategy_registration line{{.name = "fedavgm",
                                  .summary = "FedAvg with momentum on the server (Hsu et al. 2019)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fedavgm>(); }}};

} // namespace
} // namespace mneme
