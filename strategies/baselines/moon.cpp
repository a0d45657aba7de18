// MOON: Q. Li, B. He and D. Song, "Model-Contrastive Federated Learning", CVPR 2021, Algorithm 1. A client minimizes
//     L = CE + mu l_con,
//     l_con = -log(e^{cos(z, z_glob) / T} / (e^{cos(z, z_glob) / T} + e^{cos(z, z_prev) / T}))   (eq. 3).
// z are a row's features in the trained net, and z_glob those in the received model. z_prev are the features in the
// client's own model after its previous round.
//
// Official code: a client without a previous model trains with CE only; ours does the same. The official code adds two
// projection layers before the head; NIID-Bench does not.
//
// Ours: z are the features that the head reads. To add a projection, choose a model with one (`hidden` of an mlp, a
// head with hidden layers). As in the paper, one previous model is used. check() rejects nets without a trained layer
// before the head, because the term would have no effect.
#include "strategies/shared/averaging.hpp"
#include "strategies/shared/row_losses.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/softplus.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme::moon_method {
namespace {

// Axes: B rows of a step, D features.

constexpr const char* previous_name = "previous"; // [P] in a client's memory

struct options {
  double mu = 1.0, temperature = 0.5;
};

/// CE + mu l_con. Teacher 0 of the job is the received model; teacher 1 is the client's previous model.
loss_ref contrastive_objective(const options& options) {
  return differentiable_objective(
      {.identity = fmt::format("moon {} {}", options.mu, options.temperature),
       .terms = {"cross_entropy", "contrast"},
       .reads_label_smoothing = true,
       .reads_features = true},
      [options](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto global = cosine_rows(in.features, in.teachers[0].features);
        const auto previous = cosine_rows(in.features, in.teachers[1].features);
        const auto contrast = at::softplus((previous - global) / options.temperature); // log(1 + e^((prev - glob) / T))
        return {cross_entropy_rows(in.logits, in.labels, in.label_smoothing), contrast * options.mu};
      });
}

class moon final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("mu", options_.mu, {.low = 0.0}, "Weight of the contrastive term (eq. 3); 0 is FedAvg.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "tau: temperature of the contrastive term.");
  }
  std::vector<preset> presets() const override {
    return {{"paper", "the settings of the paper's experiments, with the best mu on CIFAR-10",
             "[strategy]\nmu = 5.0\ntemperature = 0.5\n"
             "[training]\nepochs = 10\nbatch = 64\nlearning_rate = 0.01\nmomentum = 0.9\nweight_decay = 1e-5\n"}};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    transmitted_ = transmitted_weights(setup.net, setup.trainable);
    contrastive_ = contrastive_objective(options_);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;

private:
  [[nodiscard]] train_job training(const client_context& ctx, const broadcast& in) const;

  options options_;
  transmitted_weights transmitted_;
  loss_ref contrastive_;
};

diagnostics moon::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (setup.trainable == trainable_part::head)
    errors.push_back({"model.trainable", "model.trainable = \"head\": moon compares features, which do not change if "
                                         "only the head is trained; expected \"all\""});
  append(errors, reject_token_losses(setup, "moon compares features of rows"));
  const auto& layout = setup.net->layout();
  if (std::all_of(layout.begin(), layout.end(), [](const parameter& entry) { return entry.head; }))
    errors.push_back({"model.name", fmt::format("'{}' consists of a head only: moon compares features, which would be "
                                                "the rows themselves; expected a net with a layer before its head",
                                                setup.net->identity())});
  return errors;
}

train_job moon::training(const client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = full_weights(in.weights, in);
  const auto* const previous = ctx.memory().find(previous_name);
  if (!previous || options_.mu == 0.0)
    return job;
  job.objective = contrastive_;
  job.add_teacher(job.start, {.features = true});
  job.add_teacher(weights_only(*previous), {.features = true});
  return job;
}

task<client_result> moon::client_round(client_context& ctx, const broadcast& in) const {
  auto learning = ctx.train(training(ctx, in));
  const auto trained = co_await learning;
  const auto& learned = trained.weights->at(flat_weights);
  auto kept = std::make_shared<tensor_map>();
  kept->put(previous_name, learned);
  client_result result;
  result.upload = transmitted_.pick(learned);
  result.memory = std::move(kept);
  result.rows = trained.rows_seen;
  co_return result;
}

const strategy_registration line{
    {.name = "moon",
     .summary = "FedAvg with a contrastive loss of models' features (MOON, Li et al. 2021)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<moon>(); }}};

} // namespace
} // namespace mneme::moon_method
