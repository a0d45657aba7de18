// DyTox: A. Douillard, A. Rame, G. Couairon and M. Cord, "DyTox: Transformers for Continual Learning with DYnamic TOken
// eXpansion", CVPR 2022. Every task has a token and a head on a shared encoder (convit.hpp). With n classes seen, s new
// ones and lam = distillation (n - s) / n:
//     L = (1 - lam) BCE(z, onehot) + lam KL(teacher, z) / (n - s) + divergence BCE(v, target).
// BCE is a mean over rows and columns, KL a mean over rows. v are the s + 1 outputs of the divergence head, which
// separates the new classes from each other and from all old classes. Its target is 0 for an old class and y - (n - s)
// + 1 for a new one. In the first task, only the BCE term is used.
//
// The official code computes the formula above, with tokens and heads of old tasks frozen. After a task, it freezes the
// encoder and tunes all tokens, heads and the decoder by BCE on equally many rows per class. Stochastic depth stays on.
//
// Ours: federated as described in rehearsal.hpp; tuning takes place in the last round of a task. The net holds tokens
// and heads of all tasks from the start, and those of later tasks keep their initial values. The server averages all
// weights and draws a new divergence head for each task. Exemplars are herded on the tokens of finished tasks, without
// augmentation. The learning rate is constant within a round. The warm-up is a separate training job in the first round
// of a task, at the mean rate of the warm-up. Repeated augmentation is omitted, and weight decay also covers biases.
// LGA's comparison has a ResNet-18 for all methods; our DyTox has the transformer of its own paper.
#include "strategies/baselines/dytox/convit.hpp"
#include "strategies/baselines/rehearsal.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
namespace mneme::dytox_method {
namespace {

enum draws : std::uint32_t { divergence_draw = first_method_purpose };
constexpr double warm_up_begins_at = 1e-6;

struct options {
  double distillation = 1.0, temperature = 1.0, divergence = 0.1;
  std::int64_t tuning_epochs = 20, warmup_epochs = 0;
  double tuning_rate = 1.25e-5, rate_min = 0.0;
};

// -- the loss ---------------------------------------------------------------------------------------------------------

/// BCE of the divergence head: [R]. @param map [R, outputs of the largest task + 1, 1, 1]; the first s + 1 outputs
/// count
at::Tensor divergence_rows(const at::Tensor& map, const at::Tensor& labels, const class_split& classes) {
  const auto shown = map.flatten(1).narrow(1, 0, classes.fresh.size() + 1); // [R, s + 1]
  const auto targets = (labels - classes.old() + 1).clamp_min(0);
  return binary_cross_entropy_rows(shown, one_hot_rows(targets, shown));
}

loss_ref dytox_objective(const options& options, const class_split& classes) {
  return differentiable_objective(
      {.identity = fmt::format("dytox {} {} {} {} {}", options.distillation, options.temperature, options.divergence,
                               classes.old(), classes.fresh.size()),
       .terms = {"binary_cross_entropy", "distillation", "divergence"}},
      [options, classes](const loss_rows& in) {
        const auto old = static_cast<double>(classes.old()), opened = static_cast<double>(classes.opened());
        const auto lam = in.teachers.empty() ? 0.0 : options.distillation * old / opened;
        std::vector<at::Tensor> terms(3);
        terms[0] = binary_cross_entropy_rows(in.logits, one_hot_rows(in.labels, in.logits)) * (1.0 - lam);
        if (!in.teachers.empty())
          terms[1] =
              old_class_distillation(in.logits, in.teachers[0].logits,
                                     {.form = distillation_form::kl_elements, .temperature = options.temperature}) *
              lam;
        if (!in.maps.empty())
          terms[2] = divergence_rows(in.maps[0], in.labels, classes) * options.divergence;
        return terms;
      });
}

// -- client half ------------------------------------------------------------------------------------------------------

class dytox final : public rehearsing_method {
public:
  method_needs needs() const override {
    auto needed = rehearsing_method::needs();
    needed.round_barrier = true;
    needed.defaults = "[model]\nname = \"convit\"\n" + needed.defaults;
    return needed;
  }
  tl::expected<model_ref, std::string> build_net(const model_kind& kind, const std::array<std::int64_t, 3>& shape,
                                                 std::int64_t outputs) const override {
    const auto* const tokens = dynamic_cast<const convit_kind*>(&kind);
    return tokens ? tokens->build_with(shape, outputs, options_.divergence > 0.0) : kind.build(shape, outputs);
  }
  void keys(key_table& table) override {
    table.number("distillation", options_.distillation, {.low = 0.0, .high = 1.0},
                 "Weight of the distillation, relative to the share of old classes; the rest is the weight of the "
                 "labels' loss.");
    table.number("temperature", options_.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation.");
    table.number("divergence", options_.divergence, {.low = 0.0},
                 "Weight of the divergence head's loss; 0: no divergence head.");
    table.integer("tuning_epochs", options_.tuning_epochs, {.low = 0, .high = 100'000},
                  "Epochs on balanced rows with a frozen encoder, in the last round of every task except the first.");
    table.number("tuning_rate", options_.tuning_rate, {.low = 0.0, .open_low = true},
                 "Learning rate of the tuning (tuning_epochs).");
    table.integer("warmup_epochs", options_.warmup_epochs, {.low = 0, .high = 100'000},
                  "Warm-up epochs in the first round of a task, at the mean rate of a linear rise from 1e-6.");
    table.number("rate_min", options_.rate_min, {.low = 0.0}, "Final learning rate of training.schedule.");
    memory_keys(table);
  }
  std::vector<preset> presets() const override {
    const std::string common = "[strategy]\nwarmup_epochs = 5\nrate_min = 1e-5\n";
    const std::string training = "[training]\nepochs = 20\nbatch = 128\noptimizer = \"adamw\"\n"
                                 "learning_rate = 1.25e-4\nschedule = \"cosine\"\nweight_decay = 1e-6\n"
                                 "augment = \"crop-flip-jitter\"\n";
    return {{.name = "paper",
             .meaning = "as in LGA's comparison, with 20 epochs in each of 10 rounds and DyTox's rates for CIFAR-100",
             .toml = common + training},
            {.name = "official",
             .meaning = "like preset paper, with the herding of DyTox's official code",
             .toml = common + "exemplars = \"repeats\"\n" + training}};
  }
  diagnostics check(const method_setup& setup) const override;
  void prepare(const method_setup& setup) override {
    rehearsing_method::prepare(setup);
    net_ = std::dynamic_pointer_cast<const convit>(setup.net);
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override;

protected:
  at::Tensor herd_features(const at::Tensor& features, std::int64_t tasks) const override {
    return features.narrow(1, 0, tasks * net_->width());
  }

private:
  [[nodiscard]] train_job learning(const client_context& ctx, const broadcast& in, const rehearsal_state& now) const;
  [[nodiscard]] train_job tuning(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                 const tensors_ref& weights, row_list rows) const;
  [[nodiscard]] task<tensors_ref> warmed_up(client_context& ctx, const broadcast& in, train_job& job) const;
  [[nodiscard]] task<tensors_ref> tuned(client_context& ctx, const broadcast& in, const rehearsal_state& now,
                                        tensors_ref weights) const;

  options options_;
  std::shared_ptr<const convit> net_;
};

diagnostics dytox::check(const method_setup& setup) const {
  auto errors = rehearsing_method::check(setup);
  append(errors, reject_label_smoothing(setup, "its loss is a binary cross-entropy per class"));
  if (!dynamic_cast<const convit*>(setup.net.get()))
    errors.push_back(
        {"model.name",
         fmt::format("the net '{}' has no token per task, which the method needs; expected model.name = \"convit\"",
                     setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    errors.push_back(
        {"model.trainable",
         "model.trainable: task tokens and their block are trained together with the encoder; expected \"all\""});
  return errors;
}

/// Local training of all layers except the tokens and heads of old tasks.
train_job dytox::learning(const client_context& ctx, const broadcast& in, const rehearsal_state& now) const {
  auto job = training(ctx, in, now, now.all_rows());
  auto& to = job.options;
  if (options_.rate_min < setup().training.learning_rate)
    to.learning_rate =
        options_.rate_min + (1.0 - options_.rate_min / setup().training.learning_rate) * to.learning_rate;
  to.trained = trainable_part::layers;
  to.layers = convit::encoder_layers();
  to.layers.push_back(convit::decoder_layer());
  for (const auto& name : convit::task_layers(now.classes.task))
    to.layers.push_back(name);
  to.layers.push_back(convit::head_layer());
  to.held_classes = now.classes.old();
  if (now.classes.old() > 0 && options_.divergence > 0.0) {
    to.layers.push_back(convit::divergence_layer());
    to.maps = {convit::divergence_layer()};
  }
  if (options_.distillation == 0.0)
    job.remove_teachers();
  job.objective = dytox_objective(options_, now.classes);
  return job;
}

/// Warm-up in the first round of a task. Trains the first epochs of `job` at the mean of a linearly rising rate, and
/// reduces the epochs of `job` accordingly.
task<tensors_ref> dytox::warmed_up(client_context& ctx, const broadcast& in, train_job& job) const {
  const auto epochs = std::min(options_.warmup_epochs, job.options.epochs);
  if (in.info.round_of_task > 0 || epochs == 0)
    co_return job.start;
  auto rising = job;
  const auto done = static_cast<double>(epochs - 1) / (2.0 * static_cast<double>(options_.warmup_epochs));
  rising.options.epochs = epochs;
  rising.options.learning_rate = warm_up_begins_at + done * (job.options.learning_rate - warm_up_begins_at);
  rising.stream.visit += 1U << 25U; // no round has this visit number, so the warm-up gets its own shuffle
  auto warming = ctx.train(std::move(rising));
  const auto warm = co_await warming;
  job.options.epochs -= epochs;
  co_return warm.weights;
}

train_job dytox::tuning(const client_context& ctx, const broadcast& in, const rehearsal_state& now,
                        const tensors_ref& weights, row_list rows) const {
  auto job = training(ctx, in, now, std::move(rows));
  job.start = weights;
  job.remove_teachers();
  job.objective = dytox_objective(options_, now.classes);
  auto& to = job.options;
  to.trained = trainable_part::layers;
  to.layers = {convit::decoder_layer(), convit::head_layer()};
  for (std::int64_t k = 0; k <= now.classes.task; ++k)
    for (const auto& name : convit::task_layers(k))
      to.layers.push_back(name);
  to.update_running_stats = true; // keeps stochastic depth on in the encoder
  to.epochs = to.epochs == 0 ? 0 : options_.tuning_epochs;
  to.learning_rate = options_.tuning_rate;
  job.stream.visit += 1U << 24U;
  return job;
}

/// In the last round of a task, from task 2 on, tunes on balanced rows. Otherwise returns `weights` unchanged.
task<tensors_ref> dytox::tuned(client_context& ctx, const broadcast& in, const rehearsal_state& now,
                               tensors_ref weights) const {
  if (!now.is_last || now.classes.old() == 0 || options_.tuning_epochs == 0 || now.all_rows().empty())
    co_return weights;
  auto balancing = choose_balanced_rows(ctx, now, weights);
  const auto rows = co_await balancing;
  auto job = tuning(ctx, in, now, weights, rows);
  auto tuning_there = ctx.train(std::move(job));
  const auto balanced = co_await tuning_there;
  co_return balanced.weights;
}

task<client_result> dytox::client_round(client_context& ctx, const broadcast& in) const {
  auto recalling = load_rehearsal(ctx, in);
  const auto now = co_await recalling;

  auto job = learning(ctx, in, now);
  auto warming = warmed_up(ctx, in, job);
  const auto warm = co_await warming;
  auto trained = warm;
  if (job.options.epochs > 0 || warm == now.start) {
    job.start = warm;
    auto training_on = ctx.train(std::move(job));
    const auto learned = co_await training_on;
    trained = learned.weights;
  }
  auto balancing = tuned(ctx, in, now, trained);
  const auto weights = co_await balancing;
  co_return result_of(now, weights);
}

// -- server half ------------------------------------------------------------------------------------------------------

class dytox_server final : public rehearsing_server {
public:
  dytox_server(const method_setup& setup, std::shared_ptr<const convit> net)
      : rehearsing_server(setup), net_(std::move(net)), seed_(setup.seed) {}
  task<task_plan> open_task(server_context& ctx, const round_info& info) override {
    auto opening = rehearsing_server::open_task(ctx, info);
    const auto plan = co_await opening;
    ++opened_;
    if (opened_ > 1)
      draw_divergence_head();
    co_return plan;
  }
  /// "token_distance" is the mean distance between the tokens of two tasks. It is reported from the second task on.
  std::map<std::string, double> summary_metrics() const override {
    auto numbers = rehearsing_server::summary_metrics();
    double sum = 0.0;
    for (std::int64_t a = 0; a < opened_; ++a)
      for (std::int64_t b = a + 1; b < opened_; ++b)
        sum += (net_->token_of(weights(), a) - net_->token_of(weights(), b)).norm().item<double>();
    if (opened_ > 1)
      numbers["token_distance"] = 2.0 * sum / static_cast<double>(opened_ * (opened_ - 1));
    return numbers;
  }
  void persist(archive& state) override {
    rehearsing_server::persist(state);
    state(opened_);
  }

private:
  /// The divergence head depends on the classes of the task, so each task gets a new one.
  void draw_divergence_head() {
    rng_stream draw({.seed = seed_, .purpose = divergence_draw, .index = static_cast<std::uint64_t>(opened_)});
    const auto seed = draw.bits64();
    auto flat = weights().clone();
    for (const auto& entry : net_->layout())
      if (entry.name.starts_with(convit::divergence_layer() + "."))
        put_as_in_files(flat, entry, initial_values(entry, seed).to(flat.device()));
    set_weights(std::move(flat));
  }

  std::shared_ptr<const convit> net_;
  std::uint64_t seed_;
  std::int64_t opened_ = 0; // number of opened tasks
};

std::unique_ptr<server_half> dytox::make_server() const { return std::make_unique<dytox_server>(setup(), net_); }

const strategy_registration line{
    {.name = "dytox",
     .summary = "a transformer with a token and a head for each task (DyTox, Douillard et al. 2022), federated",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<dytox>(); }}};

} // namespace
} // namespace mneme::dytox_method
