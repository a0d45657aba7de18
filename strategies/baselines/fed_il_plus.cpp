// FedIL+: a method in OSI-FL's comparison, for which we found neither paper nor code.
//
// Ours is an interpretation: FedAvg whose clients distill the previous task's model on its classes (T = 2), and whose
// server replays class prototypes. In its first round of a task, a client uploads the mean and variance of the features
// of each of its classes. After every round, the server trains only the head, on features drawn from normal
// distributions with these means and variances. Prototypes are computed with the model of the round in which they are
// sent. They stay valid if the body is frozen (model.trainable = "head"), and become outdated otherwise.
#include "strategies/baselines/old_model_distillation.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <numeric>
namespace mneme {
namespace {

// Axes: n rows of a client, K classes of a client, D features, P weights of the net, H weights of its head.

enum il_plus_draws : std::uint32_t { replay_draw = first_method_purpose };
constexpr std::string_view prototype_lead = "prototypes.";
constexpr const char *classes_name = "prototypes.classes", *counts_name = "prototypes.counts",
                     *means_name = "prototypes.means", *variances_name = "prototypes.variances";

struct il_plus_options {
  distillation_options distillation{.weight = 1.0, .temperature = 2.0};
  std::int64_t replayed = 50, passes = 1, batch = 64;
  double learning_rate = 0.01;
};

/// Computes the mean and variance of the features of each class: [K, D] each, with labels and counts [K].
tensor_map prototypes_of(const extract_output& encoded) {
  const auto features = encoded.features.cpu().to(at::kDouble), labels = encoded.labels.cpu();
  std::vector<at::Tensor> means, variances;
  std::vector<std::int64_t> classes, counts;
  const auto most = labels.numel() > 0 ? labels.max().item<std::int64_t>() : -1;
  for (std::int64_t c = 0; c <= most; ++c) {
    const auto rows = features.index_select(0, (labels == c).nonzero().flatten());
    if (rows.size(0) == 0)
      continue;
    classes.push_back(c);
    counts.push_back(rows.size(0));
    means.push_back(rows.mean(0));
    variances.push_back((rows - means.back()).square().mean(0));
  }
  const auto matrix = [&](const std::vector<at::Tensor>& rows) {
    return rows.empty() ? at::zeros({0, features.size(1)}) : at::stack(rows).to(at::kFloat);
  };
  tensor_map prototypes;
  prototypes.put(classes_name, at::tensor(classes, at::kInt));
  prototypes.put(counts_name, at::tensor(counts, at::kInt));
  prototypes.put(means_name, matrix(means));
  prototypes.put(variances_name, matrix(variances));
  return prototypes;
}

/// The head as a linear net on the same features. Its weights are copied from the whole net and back into it.
class head_net {
public:
  explicit head_net(const model& whole) {
    for (const auto& entry : models())
      if (entry.name == "linear")
        net_ = entry.make()->build({1, 1, whole.feature_width()}, whole.classes()).value();
    for (const auto& tensor : whole.layout())
      if (tensor.head)
        parts_.push_back(tensor);
  }
  [[nodiscard]] const model_ref& net() const noexcept { return net_; }
  /// True if the head of the whole net is one linear layer with a bias.
  [[nodiscard]] bool fits() const {
    std::int64_t size = 0;
    for (const auto& part : parts_)
      size += part.size;
    return parts_.size() == 2 && size == net_->size();
  }
  [[nodiscard]] at::Tensor head_in(const at::Tensor& flat) const {
    auto head = at::empty({net_->size()}, flat.options());
    copy(flat, head, false);
    return head;
  }
  [[nodiscard]] at::Tensor put_into(const at::Tensor& flat, const at::Tensor& head) const {
    auto whole = flat.clone();
    copy(whole, head, true);
    return whole;
  }

private:
  void copy(const at::Tensor& whole, const at::Tensor& head, bool to_whole) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto& own = net_->layout()[i];
      const auto in_whole = whole.narrow(0, parts_[i].offset, parts_[i].size);
      const auto in_head = head.narrow(0, own.offset, own.size);
      (to_whole ? in_whole : in_head).copy_(to_whole ? in_head : in_whole);
    }
  }
  model_ref net_;
  std::vector<parameter> parts_;
};

class replaying_server final : public teacher_server {
public:
  replaying_server(const method_setup& setup, const il_plus_options& options)
      : teacher_server(setup), setup_(setup), options_(options), head_(*setup.net) {}

  void fold(const delivery& in) override {
    auto learned = in;
    auto weights = std::make_shared<tensor_map>();
    for (const auto& [name, value] : *in.upload)
      if (!name.starts_with(prototype_lead))
        weights->put(name, value);
    learned.upload = weights;
    teacher_server::fold(learned);
    if (const auto* const classes = in.upload->find(classes_name))
      store_means(*classes, *in.upload);
  }
  task<void> close_round(server_context& ctx, const round_info& info) override {
    average();
    if (prototypes_.empty() || options_.replayed == 0)
      co_return;
    const auto [features, labels] = drawn(info);
    auto job = training_job(info);
    job.samples = ctx.rows_of(features, labels);
    auto training = ctx.train(std::move(job));
    auto trained = co_await training;
    set_weights(head_.put_into(weights(), trained.weights->at(flat_weights)));
  }
  std::map<std::string, double> summary_metrics() const override {
    auto counted = teacher_server::summary_metrics();
    counted["prototypes"] = static_cast<double>(prototypes_.size());
    return counted;
  }
  void persist(archive& state) override {
    teacher_server::persist(state);
    state(prototypes_);
  }

private:
  /// Weighted sums of a class's uploaded prototypes. Uploads are weighted by their rows.
  struct prototype {
    double rows = 0.0;
    at::Tensor mean, square; // [D] float64: sums of n mean and of n (variance + mean^2)
    void persist(archive& state) { state(rows).frozen(mean).frozen(square); }
  };

  void store_means(const at::Tensor& classes, const tensor_map& upload) {
    const auto counts = upload.at(counts_name).cpu(), labels = classes.cpu();
    const auto means = upload.at(means_name).cpu().to(at::kDouble);
    const auto variances = upload.at(variances_name).cpu().to(at::kDouble);
    for (std::int64_t k = 0; k < labels.numel(); ++k) {
      const auto n = static_cast<double>(counts.const_data_ptr<std::int32_t>()[k]);
      auto& known = prototypes_[labels.const_data_ptr<std::int32_t>()[k]];
      const auto mean = means[k] * n, square = (variances[k] + means[k].square()) * n;
      known.mean = known.mean.defined() ? known.mean + mean : mean;
      known.square = known.square.defined() ? known.square + square : square;
      known.rows += n;
    }
  }

  /// Draws `replayed` normal features of each class. Returns features [n, 1, 1, D] and labels [n].
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> drawn(const round_info& info) const {
    const auto width = setup_.net->feature_width(), rows = options_.replayed * std::ssize(prototypes_);
    auto features = at::empty({rows, 1, 1, width}, at::kFloat);
    auto labels = at::empty({rows}, at::kLong);
    auto* value = features.mutable_data_ptr<float>();
    std::int64_t row = 0;
    for (const auto& [label, known] : prototypes_) {
      const auto mean = known.mean / known.rows;
      const auto deviation = (known.square / known.rows - mean.square()).clamp_min(0.0).sqrt();
      rng_stream draw({.seed = setup_.seed,
                       .purpose = replay_draw,
                       .visit = static_cast<std::uint32_t>(info.round.value),
                       .index = static_cast<std::uint64_t>(label)});
      for (std::int64_t i = 0; i < options_.replayed; ++i, ++row) {
        labels.mutable_data_ptr<std::int64_t>()[row] = label;
        for (std::int64_t d = 0; d < width; ++d)
          *value++ = static_cast<float>(mean.const_data_ptr<double>()[d] +
                                        deviation.const_data_ptr<double>()[d] * draw.normal());
      }
    }
    return {features, labels};
  }

  [[nodiscard]] train_job training_job(const round_info& info) const {
    train_job job{.net = head_.net(),
                  .start = weights_only(head_.head_in(weights())),
                  .objective = cross_entropy_objective(),
                  .stream = {.seed = setup_.seed,
                             .client = server_client_id,
                             .task = info.task,
                             .visit = static_cast<std::uint32_t>(info.round.value)}};
    job.options = {.epochs = options_.passes,
                   .batch_rows = options_.batch,
                   .learning_rate = options_.learning_rate,
                   .classes = info.seen_classes};
    return job;
  }

  method_setup setup_;
  il_plus_options options_;
  head_net head_;
  std::map<std::int64_t, prototype> prototypes_; // by class label
};

class fed_il_plus final : public averaging_method {
public:
  void keys(key_table& table) override {
    table.number("distillation_weight", options_.distillation.weight, {.low = 0.0}, "Weight of the distillation loss.");
    table.number("temperature", options_.distillation.temperature, {.low = 0.0, .open_low = true},
                 "T: temperature of the distillation loss.");
    table.integer("replayed", options_.replayed, {.low = 0, .high = 100'000},
                  "Features that the server draws per class after a round; 0: no replay.");
    table.integer("replay_passes", options_.passes, {.low = 1, .high = 1'000},
                  "Epochs of the head on the drawn features.");
    table.integer("replay_batch", options_.batch, {.low = 1, .high = 65'536},
                  "Batch size of the head's training on drawn features.");
    table.number("replay_learning_rate", options_.learning_rate, {.low = 0.0},
                 "Learning rate of the head on drawn features (plain SGD).");
  }
  /// A client runs two jobs per round and uploads prototypes with the weights.
  method_needs needs() const override { return {.round_barrier = true}; }
  upload_content uploads() const override { return upload_content::weights_and_more; }
  diagnostics check(const method_setup& setup) const override {
    auto errors = averaging_method::check(setup);
    if (errors.empty() && !head_net(*setup.net).fits())
      errors.push_back({"model.name", fmt::format("the head of '{}' is more than a linear layer, but the server trains "
                                                  "a linear layer only; expected a net with a linear head",
                                                  setup.net->identity())});
    append(errors, reject_token_losses(setup, "fed-il-plus distills class scores of rows and replays their features"));
    return errors;
  }
  task<client_result> client_round(client_context& ctx, const broadcast& in) const override;
  std::unique_ptr<server_half> make_server() const override {
    return std::make_unique<replaying_server>(setup(), options_);
  }

protected:
  void adjust(train_job& job, const broadcast& in) const override {
    distill_old_classes(job, in, options_.distillation);
  }

private:
  il_plus_options options_;
};

/// The tensor "described" of the client's memory holds the last task whose prototypes the client has uploaded.
task<client_result> fed_il_plus::client_round(client_context& ctx, const broadcast& in) const {
  auto training = averaging_method::client_round(ctx, in);
  auto trained = co_await training;
  const auto* const described = ctx.memory().find("described");
  if (described && described->item<std::int64_t>() == in.info.task.value)
    co_return trained;
  extract_job looking{.net = setup().net, .weights = full_weights(in.weights, in), .samples = ctx.samples()};
  looking.logits = false;
  auto look = ctx.extract(std::move(looking));
  auto encoded = co_await look;
  auto upload = std::make_shared<tensor_map>(*trained.upload);
  for (const auto& [name, value] : prototypes_of(encoded))
    upload->put(name, value);
  trained.upload = upload;
  auto memory = std::make_shared<tensor_map>();
  memory->put("described", at::tensor({static_cast<std::int64_t>(in.info.task.value)}, at::kLong));
  trained.memory = memory;
  co_return trained;
}

const strategy_registration fed_il_plus_line{
    {.name = "fed-il-plus",
     .summary = "FedAvg with distillation and replay of class prototypes on the server (our reading of FedIL+)",
     .make = []() -> std::unique_ptr<strategy> { return std::make_unique<fed_il_plus>(); }}};

} // namespace
} // namespace mneme
