#include "strategies/fil_ver/frozen_encoder.hpp"
#include "runtime/base/check.hpp"
#include "strategies/fil_ver/ver_loss.hpp"
#include <ATen/ops/cat.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Returns at most `count` of the rows, evenly spaced.
sample_view spaced(const sample_view& from, std::int64_t count) {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  const auto n = from.size(), wanted = std::min(n, count);
  for (std::int64_t i = 0; i < wanted; ++i)
    rows->push_back((*from.rows)[static_cast<std::size_t>(i * n / wanted)]);
  return {.source = from.source, .rows = std::move(rows)};
}

} // namespace

std::shared_ptr<const embedding_model> as_embedding_model(const model_ref& net) {
  return std::dynamic_pointer_cast<const embedding_model>(net);
}

method_setup classifier_setup(const method_setup& setup) {
  const auto net = as_embedding_model(setup.net);
  MNEME_CHECK(net, setup.net->identity());
  const auto& whole = setup.initial->at(flat_weights);
  const auto size = net->classifier()->size();
  auto classifier_part = setup;
  classifier_part.net = net->classifier();
  classifier_part.initial = weights_only(whole.narrow(0, whole.numel() - size, size).clone());
  return classifier_part;
}

frozen_encoder::frozen_encoder(const method_setup& setup, options options)
    : net_(as_embedding_model(setup.net)), as_model_(setup.net), setup_(setup), options_(options) {
  MNEME_CHECK(net_, setup.net->identity());
  freeze(setup_.initial->at(flat_weights));
}

void frozen_encoder::freeze(const at::Tensor& whole) {
  whole_ = weights_only(whole);
  weights_ = weights_only(whole.narrow(0, 0, net_->encoder()->size()));
}

/// Trains by eq. 9, or by cross-entropy for point embeddings (eq. 7). If training.batch is 0 (clients use full
/// batches), the encoder is trained with the default batch size, because a full batch may not fit into memory.
task<void> frozen_encoder::train(server_context& ctx, sample_view samples, class_range classes) {
  const auto& shape = net_->shape();
  if (options_.epochs > 0) {
    train_job job{.net = as_model_,
                  .start = setup_.initial,
                  .samples = samples,
                  .objective =
                      shape.normal ? ver_loss(options_.beta, shape.low, shape.high) : cross_entropy_objective(),
                  .stream = {.seed = setup_.seed, .client = server_client_id}};
    job.options = {.optimizer = optimizer_kind::adam,
                   .epochs = options_.epochs,
                   .batch_rows = setup_.training.batch > 0 ? setup_.training.batch : training_section{}.batch,
                   .learning_rate = options_.learning_rate,
                   .classes = classes};
    auto training = ctx.train(std::move(job));
    auto trained = co_await training;
    freeze(trained.weights->at(flat_weights));
  }
  if (shape.normal) {
    constexpr std::int64_t measure_rows = 2000;
    extract_job job{.net = net_->encoder(), .weights = weights_, .samples = spaced(samples, measure_rows)};
    job.logits = false;
    auto looking = ctx.extract(std::move(job));
    auto encoded = co_await looking;
    measure(ctx, encoded.features.cpu());
  }
}

/// Measures KL divergence and deviations. A large beta removes information that later tasks need, so a low divergence
/// gives a warning.
void frozen_encoder::measure(server_context& ctx, const at::Tensor& features) {
  const auto& shape = net_->shape();
  const auto rows = features.size(0), width = shape.embedding;
  const auto* row = features.const_data_ptr<float>();
  double kl = 0.0, sigma = 0.0;
  for (std::int64_t i = 0; i < rows; ++i, row += 2 * width) {
    kl += kl_to_standard(row, width, shape.low, shape.high);
    for (std::int64_t d = 0; d < width; ++d)
      sigma += std::exp(std::clamp<double>(row[width + d], shape.low, shape.high));
  }
  measured_ = rows > 0;
  if (!measured_)
    return;
  kl_nats_ = kl / static_cast<double>(rows);
  sigma_mean_ = sigma / static_cast<double>(rows * width);
  constexpr double kl_min_nats = 50.0;
  if (kl_nats_ < kl_min_nats)
    ctx.warn(fmt::format("strategy.beta = {}: embeddings keep {:.1f} nats of KL divergence per sample ({:.3f} per "
                         "dimension), fewer than {}: later tasks cannot be distinguished; a smaller beta keeps more",
                         options_.beta, kl_nats_, kl_nats_ / static_cast<double>(width), kl_min_nats));
}

void frozen_encoder::add_figures(std::map<std::string, double>& to) const {
  if (!measured_)
    return;
  to["kl_per_sample"] = kl_nats_;
  to["kl_per_dimension"] = kl_nats_ / static_cast<double>(net_->shape().embedding);
  to["sigma_mean"] = sigma_mean_;
}

predictor frozen_encoder::with_classifier(const at::Tensor& classifier, const std::optional<rng_key>& sampled) const {
  const auto& shape = net_->shape();
  classifier_stage classifier_part{
      .net = net_->classifier(), .front_net = as_model_, .front = whole_, .reads = shape.embedding};
  if (sampled && shape.normal)
    classifier_part.sampled = sampled_features{.stream = *sampled, .low = shape.low, .high = shape.high};
  predictor whole{.net = as_model_, .weights = weights_only(at::cat({weights_->at(flat_weights), classifier}))};
  whole.classifier = classifier_part;
  return whole;
}

} // namespace mneme
