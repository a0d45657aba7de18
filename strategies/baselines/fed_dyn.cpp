// FedDyn: D. A. E. Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, Algorithm 1. From the
// received model w^r, a client minimizes
//     L_k(w) - <g_k, w> + alpha / 2 |w - w^r|^2
// and then updates its gradient estimate g_k to g_k - alpha (w_k - w^r). The server updates its state h to
// h - alpha / n sum_k (w_k - w^r) for n clients and sends mean_k w_k - h / alpha.
//
// The official code evaluates the mean of the clients' models, as we do.
//
// Ours: n is the number of clients that have uploaded so far. h and g_k persist across tasks unless `reset` is set.
// Uploads are weighted as in FedAvg. Running statistics are averaged without the correction by h.
#include "strategies/shared/averaging.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char* drift_name = "drift"; // g_k [P], in a client's memory and in the auxiliary tensors of its job

struct dyn_options {
  double alpha = 0.01;
  bool reset = false;
};

class dynamic_loss final : public cross_entropy_loss {
public:
  explicit dynamic_loss(double alpha) : alpha_(alpha) {}
  std::string identity() const override { return fmt::format("dynamic {}", alpha_); }
  bool regularizes() const override { return true; }
  /// Gradient of the linear and the proximal term: alpha (w - w^r) - g_k.
  void regularize(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset, const tensor_map* auxiliary,
                  at::Tensor& gradients) const override {
    gradients.add_(weights - start, alpha_);
    if (auxiliary)
      gradients.sub_(auxiliary->at(drift_name).to(weights.device()).narrow(0, offset, weights.numel()));
  }
  std::vector<loss_term> penalties(const at::Tensor& weights, const at::Tensor& start, std::int64_t offset,
                                   const tensor_map* auxiliary) const override {
    std::vector<loss_term> terms{{"proximal", half_square_distance(weights, start, alpha_)}};
    if (auxiliary) {
      const auto drift = auxiliary->at(drift_name).to(weights.device()).narrow(0, offset, weights.numel());
      terms.push_back({"linear", (drift * weights).sum(at::kDouble).neg()});
    }
    return terms;
  }

private:
  double alpha_;
};

class dynamic_server final : public averaging_server {
public:
  dynamic_server(const method_setup& setup, const dyn_options& options)
      : averaging_server(setup), options_(options), transmitted_(setup.net, setup.trainable),
        sent_(setup.initial->at(flat_weights)), drift_(at::zeros_like(sent_)), corrected_(at::ones(sent_.sizes())),
        heard_(static_cast<std::size_t>(setup.clients)) {
    for (const auto& entry : setup.net->layout())
      if (entry.buffer)
        corrected_.narrow(0, entry.offset, entry.size).zero_();
  }
  task<task_plan> open_task(server_context&, const round_info&) override {
    if (options_.reset)
      drift_ = at::zeros_like(drift_);
    co_return task_plan{};
  }
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    sent.weights = transmitted_.pick(sent_);
    return sent;
  }
  void fold(const delivery& in) override {
    averaging_server::fold(in);
    if (in.rows == 0)
      return;
    heard_.at(in.from.value) = 1;
    ++uploads_;
  }
  /// With the mean change d of m clients: h = h - alpha m / n d, and the next broadcast is mean - h / alpha.
  task<void> close_round(server_context&, const round_info&) override {
    average();
    const auto known = std::count(heard_.begin(), heard_.end(), 1);
    const auto uploads = std::exchange(uploads_, 0);
    if (uploads == 0)
      co_return;
    const auto share = static_cast<double>(uploads) / static_cast<double>(known);
    const auto device = weights().device();
    const auto moved = (weights() - sent_.to(device)) * corrected_.to(device);
    drift_ = drift_.to(device) - moved * (options_.alpha * share);
    sent_ = options_.alpha > 0.0 ? weights() - drift_ / options_.alpha : weights();
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state.frozen(sent_).frozen(drift_).plain(heard_)(uploads_);
  }

private:
  dyn_options options_;
  transmitted_weights transmitted_;
  at::Tensor sent_, drift_;         // [P] each: weights to broadcast, and h
  at::Tensor corrected_;            // [P] 1 for parameters, 0 for running statistics
  std::vector<std::uint8_t> heard_; // by client: 1 once it has uploaded
  std::int64_t uploads_ = 0;        // number of uploads in the open round
};

class fed_dyn final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("alpha", options_.alpha, {.low = 0.0}, "alpha: weight of the dynamic regularization; 0: FedAvg.");
    table.flag("reset", options_.reset, "Reset the drifts of clients and server when a task begins.");
  }
  /// Changes are measured from the broadcast of the round, so rounds must not overlap.
  method_needs needs() const override { return {.round_barrier = true}; }
  upload_content uploads() const override { return upload_content::weights_and_more; }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<dynamic_server>(setup(), options_);
  }

private:
  dyn_options options_;
};

task<client_result> fed_dyn::client_round(client_context& ctx, const broadcast& in) const {
  const auto start = full_weights(in.weights, in);
  const auto& memory = ctx.memory();
  const auto* known = memory.find("task");
  const bool continues = known && (!options_.reset || known->item<std::int64_t>() == in.info.task.value);
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = start;
  job.objective = std::make_shared<dynamic_loss>(options_.alpha);
  if (continues) {
    auto auxiliary = std::make_shared<tensor_map>();
    auxiliary->put(drift_name, memory.at(drift_name));
    job.auxiliary = auxiliary;
  }
  auto training = ctx.train(std::move(job));
  auto trained = co_await training;

  const auto& learned = trained.weights->at(flat_weights);
  const auto moved = (learned - start->at(flat_weights).to(learned.device())) * options_.alpha;
  auto kept = std::make_shared<tensor_map>();
  kept->put(drift_name, continues ? memory.at(drift_name).to(moved.device()) - moved : -moved);
  kept->put("task", at::ones({1}, at::kLong) * static_cast<std::int64_t>(in.info.task.value));
  const transmitted_weights traveling(setup().net, setup().trainable);
  co_return client_result{.upload = traveling.pick(learned), .memory = kept, .rows = trained.rows_seen};
}

const strategy_registration fed_dyn_line{
    {.name = "fed-dyn",
     .summary = "FedAvg with dynamic regularization (FedDyn, Acar et al. 2021)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_dyn>(); }}};

} // namespace
} // namespace mneme
