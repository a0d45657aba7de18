// FedET: two methods of 2023 share this name; the key `variant` selects one. Both are reconstructions: only an abstract
// of the first and an outline of the second were available, and no code.
//
// elastic-transfer: Guerdan and Gunes, "Federated Continual Learning for Socially Aware Robotics". Weights that were
// important for the client's or other clients' earlier tasks are regularized. A client minimizes
//     CE + l1 / 2 sum_j O_c,j (w_j - w*_c,j)^2 + l2 / 2 sum_j O_g,j (w_j - w_g,j)^2.
// O_c and w*_c are the client's own importance and model of the last task in which it took part. The server sends w_g,
// the importance-weighted mean of all client models so far, and O_g, the mean of their importances. Importance is the
// Fisher information of the task's rows at the client's model (Kirkpatrick et al. 2017). Clients upload it in the last
// round of a task.
//
// enhancer: Liu et al., "FedET: A Communication-Efficient Federated Class-Incremental Learning Framework Based on
// Enhanced Transformer", IJCAI 2023. The transformer is frozen. Adapters and head, the enhancer, are trained and
// averaged. Clients distill the enhancer of the previous task on the classes of that task. Our version has one group of
// enhancers and no distillation on the server.
#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/quadratic_penalty.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr const char *importance_name = "importance", *weighted_name = "weighted_model", *own_name = "own_importance",
                     *own_model_name = "own_model";

enum class reading : std::uint8_t { elastic_transfer, enhancer };
struct et_options {
  reading read_as = reading::elastic_transfer;
  double own_weight = 0.1, others_weight = 0.1, importance_max = 1.0;
  distillation_options distillation{.weight = 1.0, .temperature = 2.0};
};

/// The auxiliary tensors of a job hold importance and model of the client, of the server, of both, or of neither.
loss_ref elastic_objective(const et_options& options) {
  return quadratic_objective(
      fmt::format("elastic {} {}", options.own_weight, options.others_weight),
      {{.term = "own_importance", .importance = own_name, .anchor = own_model_name, .strength = options.own_weight},
       {.term = "others_importance",
        .importance = importance_name,
        .anchor = weighted_name,
        .strength = options.others_weight}});
}

/// Server of "elastic-transfer". Sums the importances in the uploads of all tasks.
class elastic_server final : public averaging_server {
public:
  explicit elastic_server(const method_setup& setup)
      : averaging_server(setup), transmitted_(setup.net, setup.trainable), base_(setup.initial->at(flat_weights)) {}
  broadcast open_round(const round_info& info) override {
    auto sent = averaging_server::open_round(info);
    sent.extra = hold_;
    return sent;
  }
  void fold(const delivery& in) override {
    auto learned = in;
    const auto* const importance = in.upload->find(importance_name);
    if (importance) {
      auto weights_alone = std::make_shared<tensor_map>();
      for (const auto& [name, value] : *in.upload)
        if (name != importance_name)
          weights_alone->put(name, value);
      learned.upload = weights_alone;
    }
    averaging_server::fold(learned);
    if (!importance || in.rows == 0)
      return;
    // Adds a small constant, so that a parameter without importance for any client gets the plain mean.
    constexpr double little = 1e-12;
    const auto own = importance->to(at::kDouble) + little;
    const auto weighted = own * transmitted_.complete(base_, *learned.upload);
    importance_ = importance_.defined() ? importance_ + own : own;
    weighted_ = weighted_.defined() ? weighted_ + weighted : weighted;
    ++senders_;
  }
  /// Computes O_g and w_g for the clients of the new task.
  task<task_plan> open_task(server_context&, const round_info&) override {
    if (senders_ > 0) {
      auto hold = std::make_shared<tensor_map>();
      hold->put(importance_name, (importance_ / static_cast<double>(senders_)).to(at::kFloat));
      hold->put(weighted_name, (weighted_ / importance_).to(at::kFloat));
      hold_ = hold;
    }
    co_return task_plan{};
  }
  void persist(archive& state) override {
    averaging_server::persist(state);
    state.frozen(importance_).frozen(weighted_)(senders_)(hold_);
  }

private:
  transmitted_weights transmitted_;
  at::Tensor base_;                  // [P]
  at::Tensor importance_, weighted_; // [P] float64: sums of O_c and of O_c w_c; undefined before the first upload
  std::int64_t senders_ = 0;
  tensors_ref hold_; // null in the first task
};

class fed_et final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.choice("variant", options_.read_as,
                 {{"elastic-transfer", reading::elastic_transfer}, {"enhancer", reading::enhancer}},
                 "FedET method: regularization by importance, or adapters in a frozen net.");
    table.number("own_weight", options_.own_weight, {.low = 0.0},
                 "l1: weight of the client's own importance (elastic-transfer).");
    table.number("others_weight", options_.others_weight, {.low = 0.0},
                 "l2: weight of the mean importance of all clients (elastic-transfer).");
    table.number("importance_max", options_.importance_max, {.low = 0.0, .open_low = true},
                 "Upper bound of an element of the importance (elastic-transfer).");
    table.number("distillation_weight", options_.distillation.weight, {.low = 0.0},
                 "Weight of the distillation from the previous task's enhancer (variant \"enhancer\").");
    table.number("temperature", options_.distillation.temperature, {.low = 0.0, .open_low = true},
                 "Temperature of the distillation (variant \"enhancer\").");
  }
  /// Clients run a second job in the last round of a task and upload its importance.
  method_needs needs() const override { return {.round_barrier = true}; }
  upload_content uploads() const override { return upload_content::weights_and_more; }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    averaging_method::prepare(setup);
    elastic_ = elastic_objective(options_);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    if (options_.read_as == reading::enhancer)
      return std::make_unique<teacher_server>(setup());
    return std::make_unique<elastic_server>(setup());
  }

private:
  [[nodiscard]] bool measures(const round_info& info) const {
    return options_.read_as == reading::elastic_transfer && info.round_of_task + 1 == info.rounds_of_task &&
           info.task.value + 1 < setup().tasks;
  }
  [[nodiscard]] train_job training_job(const client_context& ctx, const broadcast& in) const;

  et_options options_;
  loss_ref elastic_; // created once, in prepare()
};

diagnostics fed_et::check(const method_setup& setup) const {
  auto errors = averaging_method::check(setup);
  if (options_.read_as == reading::enhancer)
    append(errors, reject_token_losses(setup, "variant = \"enhancer\" distills class scores of rows"));
  if (options_.read_as == reading::enhancer && errors.empty() &&
      transmitted_weights(setup.net, setup.trainable).whole())
    errors.push_back(
        {"strategy.variant",
         fmt::format("variant = \"enhancer\": all of '{}' would be trained, but an enhancer needs a frozen net; "
                     "expected model.name = \"vit\" with model.adapter = 64, or model.trainable = \"head\"",
                     setup.net->identity())});
  return errors;
}

train_job fed_et::training_job(const client_context& ctx, const broadcast& in) const {
  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = covered_classes(in.info)});
  job.start = full_weights(in.weights, in);
  if (options_.read_as == reading::enhancer) {
    distill_old_classes(job, in, options_.distillation);
    return job;
  }
  auto auxiliary = in.extra ? std::make_shared<tensor_map>(*in.extra) : std::make_shared<tensor_map>();
  for (const auto& [name, value] : ctx.memory())
    auxiliary->put(name, value);
  job.auxiliary = auxiliary;
  job.objective = elastic_;
  return job;
}

task<client_result> fed_et::client_round(client_context& ctx, const broadcast& in) const {
  auto training = ctx.train(training_job(ctx, in));
  auto trained = co_await training;
  const auto& learned = trained.weights->at(flat_weights);
  const transmitted_weights traveling(setup().net, setup().trainable);
  auto upload = std::make_shared<tensor_map>(*traveling.pick(learned));
  if (!measures(in.info))
    co_return client_result{.upload = upload, .memory = nullptr, .rows = trained.rows_seen};

  auto job = local_training(setup(), ctx, in, {.samples = ctx.samples(), .classes = in.info.seen_classes});
  job.start = trained.weights;
  job.options.epochs = 1;
  job.options.batch_rows = 1; // squares the gradient of each single row
  job.options.result = training_result::squared_gradients;
  job.options.label_smoothing = 0.0;
  auto measuring = ctx.train(std::move(job));
  auto measured = co_await measuring;
  const auto importance = measured.gradients.clamp_max(options_.importance_max);
  upload->put(importance_name, importance);
  auto memory = std::make_shared<tensor_map>();
  memory->put(own_name, importance);
  memory->put(own_model_name, learned);
  co_return client_result{.upload = upload, .memory = memory, .rows = trained.rows_seen};
}

const strategy_registration fed_et_line{
    {.name = "fed-et",
     .summary = "FedAvg regularized by importance, or with adapters in a frozen net (both called FedET, 2023)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_et>(); }}};

} // namespace
} // namespace mneme
