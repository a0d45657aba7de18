// FedNova: J. Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization",
// NeurIPS 2020. The server divides the change of client i by |a_i|_1, the total weight of its local steps. So the
// number of steps does not determine a client's influence. With p_i = n_i / n, the client's share of the round's rows:
//     x = x - tau_eff sum_i p_i eta d_i,  eta d_i = (x - x_i) / |a_i|_1.
// For tau steps of plain SGD, |a|_1 = tau. With momentum rho, |a|_1 is the sum of (1 - rho^k) / (1 - rho) over k = 1 ..
// tau. With a proximal term mu, it is the sum of (1 - eta mu)^k over k = 0 .. tau - 1. The effective number of steps is
// tau_eff = sum_i p_i tau_i.
//
// The official code uses this tau_eff only with a proximal term; otherwise tau_eff = sum_i p_i |a_i|_1. Momentum and
// proximal term can be combined. The server can use a momentum beta: b = beta b + tau_eff sum_i p_i d_i, x = x - eta b.
//
// Ours: `effective_steps` selects tau_eff: "steps" (paper), "weights" (sum_i p_i |a_i|_1), or "auto" (as the official
// code). The choice matters only with momentum or a proximal term. `server_momentum` is beta. Running statistics are
// averaged without normalization by steps.
#include "strategies/baselines/local_steps.hpp"
#include "strategies/shared/averaging.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme::fed_nova_method {
namespace {

// Axes: P weights of the net.

constexpr const char* steps_name = "steps"; // [2] float64 in uploads: |a_i|_1 and tau_i

enum class effective_steps : std::uint8_t { automatic, steps, weights };
struct options {
  double mu = 0.0, server_momentum = 0.0;
  effective_steps effective = effective_steps::automatic;
  [[nodiscard]] bool counts_steps() const {
    return effective == effective_steps::steps || (effective == effective_steps::automatic && mu != 0.0);
  }
};

/// Returns |a|_1 after `steps` steps, by recursion over the steps (section 3 of the paper). @param shrinking the
/// product eta mu
double weight_of_steps(std::int64_t steps, double momentum, double shrinking) {
  double sum = 0.0, reach = 0.0; // reach: 1 + rho + rho^2 + ..., which is the weight of the newest step
  for (std::int64_t k = 0; k < steps; ++k) {
    reach = momentum * reach + 1.0;
    if (momentum != 0.0)
      sum += reach;
    if (shrinking != 0.0)
      sum = sum * (1.0 - shrinking) + 1.0;
    if (momentum == 0.0 && shrinking == 0.0)
      sum += 1.0;
  }
  return sum;
}

/// Returns [P], 1 for parameters and 0 for running statistics.
at::Tensor parameters_of(const model& net) {
  auto is_parameter = at::ones({net.size()});
  for (const auto& entry : net.layout())
    if (entry.buffer)
      is_parameter.narrow(0, entry.offset, entry.size).zero_();
  return is_parameter;
}

class nova_server final : public averaging_server {
public:
  nova_server(const method_setup& setup, const options& options)
      : averaging_server(setup), setup_(setup), options_(options), transmitted_(setup.net, setup.trainable),
        parameters_(parameters_of(*setup.net)), slow_(at::zeros_like(weights())) {}

  void fold(const delivery& in) override {
    const double weight = weight_of(in);
    if (weight == 0.0 || in.rows == 0)
      return; // a client without rows has not trained
    const auto* const steps = in.upload->at(steps_name).const_data_ptr<double>();
    for (const auto& [name, value] : *in.upload)
      if (name != steps_name)
        moves_[name].add(value, weight);
    effective_ += weight * steps[options_.counts_steps() ? 1 : 0];
    weight_ += weight;
  }
  task<void> close_round(server_context&, const round_info& info) override {
    if (weight_ == 0.0)
      co_return;
    tensor_map means;
    for (auto& [name, sum] : moves_)
      means.put(name, sum.take());
    const auto effective = std::exchange(effective_, 0.0) / std::exchange(weight_, 0.0); // tau_eff
    const auto mean = transmitted_.complete(at::zeros_like(weights()), means);           // sum_i p_i eta d_i
    const auto moved = parameters_.to(mean.device());
    const auto from = weights().to(mean.device());
    set_weights(from - (step_of(mean * moved * effective, info) + mean * (1.0 - moved)));
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state(moves_)(effective_)(weight_).frozen(slow_);
  }

private:
  /// Returns `movement`, or a step with slow momentum if server_momentum > 0.
  at::Tensor step_of(const at::Tensor& movement, const round_info& info) {
    if (options_.server_momentum == 0.0)
      return movement;
    const auto rate =
        options_for_round(setup_.training, setup_.trainable, info.seen_classes, info.round_of_task, info.rounds_of_task)
            .learning_rate;
    slow_ = slow_.to(movement.device()) * options_.server_momentum + movement / rate;
    return slow_ * rate;
  }

  method_setup setup_;
  options options_;
  transmitted_weights transmitted_;
  at::Tensor parameters_;                         // [P] 1 for parameters, 0 for running statistics
  std::map<std::string, weighted_average> moves_; // one per uploaded tensor
  double effective_ = 0.0, weight_ = 0.0;         // sums over the open round
  at::Tensor slow_;                               // b [P]
};

class fed_nova final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("mu", options_.mu, {.low = 0.0}, "Weight of a proximal term in the local objective; 0: none.");
    table.number("server_momentum", options_.server_momentum, {.low = 0.0, .high = 1.0},
                 "Slow momentum of the server's step; 0: none.");
    table.choice(
        "effective_steps", options_.effective,
        {{"auto", effective_steps::automatic},
         {"steps", effective_steps::steps},
         {"weights", effective_steps::weights}},
        "tau_eff: the clients' mean number of steps, the mean weight of their steps, or the official code's choice.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "tau_eff as the clients' mean number of steps", "[strategy]\neffective_steps = \"steps\"\n"},
            {"official",
             "the official code, with step counts if mu > 0 and weights of steps otherwise; weight decay 1e-4",
             "[strategy]\neffective_steps = \"auto\"\n[training]\nweight_decay = 1e-4\n"},
            {"niid-bench", "NIID-Bench, with the weights of the steps", "[strategy]\neffective_steps = \"weights\"\n"}};
  }
  /// Clients are weighted as shares of one round, and upload their number of steps.
  method_needs needs() const override { return {.round_barrier = true}; }
  upload_content uploads() const override { return upload_content::other; }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    transmitted_ = transmitted_weights(setup.net, setup.trainable);
    parameters_ = parameters_of(*setup.net);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override { return std::make_unique<nova_server>(setup(), options_); }

protected:
  loss_ref objective() const override {
    return options_.mu == 0.0 ? cross_entropy_objective() : proximal_objective(options_.mu);
  }

private:
  options options_;
  transmitted_weights transmitted_;
  at::Tensor parameters_; // [P] 1 for parameters, 0 for running statistics
};

diagnostics fed_nova::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (setup.training.optimizer != optimizer_kind::sgd)
    errors.push_back({"training.optimizer", "fed-nova defines the weights of SGD steps only, with or without momentum; "
                                            "expected training.optimizer = \"sgd\""});
  if (options_.server_momentum > 0.0 && setup.training.learning_rate == 0.0)
    errors.push_back(
        {"strategy.server_momentum",
         fmt::format(
             "strategy.server_momentum = {}: the server's momentum sums the clients' changes divided by "
             "training.learning_rate, which is 0; expected a learning rate > 0, or strategy.server_momentum = 0",
             options_.server_momentum)});
  if (options_.mu * setup.training.learning_rate >= 1.0)
    errors.push_back({"strategy.mu", fmt::format("strategy.mu = {}: with training.learning_rate = {} a step would "
                                                 "overshoot the received model; expected a product below 1",
                                                 options_.mu, setup.training.learning_rate)});
  return errors;
}

task<client_result> fed_nova::client_round(client_context& ctx, const broadcast& in) const {
  const auto start = full_weights(in.weights, in);
  auto training = averaging_method::client_round(ctx, in);
  auto result = co_await training;

  const auto local = options_for_round(setup().training, setup().trainable, in.info.seen_classes, in.info.round_of_task,
                                       in.info.rounds_of_task);
  const auto steps = local_steps(local, result.rows);
  const auto weight = weight_of_steps(steps, local.momentum, local.learning_rate * options_.mu);
  const auto learned = full_weights(result.upload, in)->at(flat_weights);
  const auto moved = start->at(flat_weights).to(learned.device()) - learned;
  const auto parameters = parameters_.to(learned.device());
  const auto scale = parameters / std::max(weight, 1.0) + (1.0 - parameters); // running statistics are not scaled
  auto upload = std::make_shared<tensor_map>(*transmitted_.pick(moved * scale));
  upload->put(steps_name, at::tensor({weight, static_cast<double>(steps)}, at::kDouble));
  result.upload = std::move(upload);
  co_return result;
}

const strategy_registration line{{.name = "fed-nova",
                                  .summary = "FedAvg normalized by local steps (FedNova, Wang et al. 2020)",
                                  .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_nova>(); }}};

} // namespace
} // namespace mneme::fed_nova_method
