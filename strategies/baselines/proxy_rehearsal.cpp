#include "strategies/baselines/proxy_rehearsal.hpp"
#include "strategies/baselines/row_cosine.hpp"
#include "strategies/shared/training_keys.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {

// -- what is minimised ------------------------------------------------------------------------------------------------

row_losses nca_rows(const at::Tensor& logits, const at::Tensor& labels) {
  const auto [largest, at_largest] = logits.max(1, true);
  const auto places = labels.clamp(0, logits.size(1) - 1).unsqueeze(1);
  const auto lower = logits - largest;
  const auto others = lower.exp().scatter(1, places, 0.0);
  const auto sum = others.sum(1, true) + 1.0;
  auto gradient = (others / sum).scatter(1, places, -1.0);
  gradient.scatter_add_(1, at_largest, sum.reciprocal()); // less the sum of the others, which is -1 / sum
  return {.values = (sum.log() - lower.gather(1, places)).squeeze(1), .gradient = gradient};
}

row_losses turned_rows(const at::Tensor& features, const at::Tensor& taught) {
  const row_cosine turned(features, taught);
  return {.values = (1.0 - turned.value).squeeze(1), .gradient = -turned.slope};
}

namespace {

constexpr double length_min = 1e-12;

/// |u - v| along the last axis of u = x / |x| and of v, and its gradient by x. The norm of 0 has the gradient 0.
row_losses unit_distances(const at::Tensor& x, const at::Tensor& taught) {
  const auto length = x.norm(2, {-1}, true).clamp_min(length_min);
  const auto u = x / length, away = u - taught / taught.norm(2, {-1}, true).clamp_min(length_min);
  const auto distance = away.norm(2, {-1}, true);
  const auto by_u = at::where(distance > 0, away / distance, at::zeros_like(away));
  return {.values = distance.squeeze(-1), .gradient = (by_u - u * (u * by_u).sum(-1, true)) / length};
}

} // namespace

row_losses spatially_pooled_rows(const at::Tensor& map, const at::Tensor& taught) {
  const auto pooled = [](const at::Tensor& whole) {
    const auto squares = whole.square();
    return at::cat({squares.sum(3).flatten(1), squares.sum(2).flatten(1)}, 1); // [B, C h + C w]
  };
  const auto rows = unit_distances(pooled(map), pooled(taught));
  const auto channels = map.size(1), height = map.size(2), width = map.size(3);
  const auto by_height = rows.gradient.narrow(1, 0, channels * height).reshape({-1, channels, height, 1});
  const auto by_width = rows.gradient.narrow(1, channels * height, channels * width).reshape({-1, channels, 1, width});
  return {.values = rows.values, .gradient = map * (by_height + by_width) * 2.0};
}

row_losses channel_rows(const at::Tensor& map, const at::Tensor& taught, const at::Tensor& weight) {
  const auto rows = unit_distances(map.square().flatten(2), taught.square().flatten(2)); // [B, C], [B, C, h w]
  const auto share = weight / static_cast<double>(map.size(1));
  return {.values = (rows.values * share).sum(1),
          .gradient = map * (rows.gradient * share.unsqueeze(1)).view(map.sizes()) * 2.0};
}

namespace {

class nca_loss final : public stepwise_loss {
public:
  nca_loss() : stepwise_loss("nca", {"nca"}) {}

protected:
  void add_model(const model_step& in, const model_losses& out) const override {
    out.add(0, in, nca_rows(in.logits, in.labels), 1.0);
  }
};

} // namespace

// -- the method's parts -----------------------------------------------------------------------------------------------

method_needs proxy_rehearsal::needs() const {
  auto needed = rehearsing_method::needs();
  needed.head = head_kind::proxies;
  needed.proxies = proxies_.proxies;
  needed.signed_features = true;
  needed.round_barrier = true;
  return needed;
}

void proxy_rehearsal::proxy_keys(key_table& table) {
  table.integer("proxies", proxies_.proxies, {.low = 1, .high = 1000}, "Proxies of a class.");
  table.integer("tuning_epochs", proxies_.tuning_epochs, {.low = 0, .high = 100'000},
                "Epochs of the head on balanced rows, in the last round of every task but the first.");
  table.number("tuning_rate", proxies_.tuning_rate, {.low = 0.0, .open_low = true}, "Their learning rate.");
}

diagnostics proxy_rehearsal::check(const method_setup& setup) const {
  auto wrong = rehearsing_method::check(setup);
  append(wrong,
         reject_label_smoothing(setup, "its loss compares rows with proxies of classes, and has no cross-entropy"));
  if (setup.net->maps().empty())
    wrong.push_back({"model.name", fmt::format("'{}' shows no maps of its stages, which the method keeps near those of "
                                               "the model before; expected a residual net",
                                               setup.net->identity())});
  if (setup.trainable != trainable_part::all)
    wrong.push_back({"model.trainable", "model.trainable: the method distils what the body shows, which would stay as "
                                        "it is; expected \"all\""});
  return wrong;
}

void proxy_rehearsal::prepare(const method_setup& setup) {
  rehearsing_method::prepare(setup);
  nca_ = std::make_shared<nca_loss>();
  for (const auto& name : setup.net->maps())
    if (name != "stem")
      maps_.push_back(name);
}

train_job proxy_rehearsal::proxy_training(const client_context& ctx, const broadcast& in, const rehearsal& now,
                                          loss_ref objective, bool distils) const {
  auto job = training(ctx, in, now, now.all_rows());
  job.options.held_classes = now.classes.old();
  job.options.taught = {};
  if (!job.teacher || !distils) {
    job.teacher = nullptr;
    job.objective = nca_;
    return job;
  }
  job.objective = std::move(objective);
  job.options.taught_features = true;
  job.options.maps = maps_;
  return job;
}

task<tensors_ref> proxy_rehearsal::tuned_head(client_context& ctx, const broadcast& in, const rehearsal& now,
                                              tensors_ref weights) const {
  if (!now.is_last || now.classes.old() == 0 || proxies_.tuning_epochs == 0 || now.all_rows().empty())
    co_return weights;
  auto balancing = balanced_rows(ctx, now, weights);
  const auto rows = co_await balancing;
  auto job = training(ctx, in, now, rows);
  job.start = weights;
  job.teacher = nullptr;
  job.objective = nca_;
  job.options.taught = {};
  job.options.trained = trainable_part::head;
  job.options.epochs = job.options.epochs == 0 ? 0 : proxies_.tuning_epochs;
  job.options.learning_rate = proxies_.tuning_rate;
  job.stream.visit += 1U << 24U; // visits are fewer: it shuffles by itself
  auto tuning = ctx.train(std::move(job));
  const auto tuned = co_await tuning;
  co_return tuned.weights;
}

} // namespace mneme
