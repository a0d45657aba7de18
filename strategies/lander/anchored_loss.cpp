#include "strategies/lander/anchored_loss.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

part_weights part_weights_of(std::int64_t old_classes, std::int64_t seen_classes) {
  if (old_classes == 0)
    return {};
  const double a = std::log2(static_cast<double>(seen_classes) / 2.0 + 1.0);
  const double b = std::sqrt(static_cast<double>(old_classes) / static_cast<double>(seen_classes));
  return {.fresh = 0.2 * (1.0 + 1.0 / a) / b, .old = 0.4 * a * b};
}

namespace {

/// A part of the step's rows: the real or the replayed ones.
struct row_part {
  at::Tensor logits, labels, weight;
};

/// l relu(mean over rows of |map - anchor|^2 / E - r), one hinge per batch, as in the official code.
at::Tensor anchoring_of(const row_part& own, const anchored_terms& settings) {
  const auto map = own.logits.narrow(1, settings.classes, settings.anchors.size(1));
  const auto anchors = settings.anchors.to(map.device()).index_select(0, own.labels);
  const auto distance = weighted_sum((map - anchors).square().mean(1), own.weight);
  return at::relu(distance - settings.radius) * settings.anchoring;
}

/// |map - teacher's map|^2 / E of each row.
at::Tensor map_rows(const row_part& replayed, const at::Tensor& teacher_output, const anchored_terms& settings) {
  return (replayed.logits - teacher_output).narrow(1, settings.classes, settings.anchors.size(1)).square().mean(1);
}

std::vector<at::Tensor> anchored_values(const loss_rows& in, const anchored_terms& settings) {
  const auto replayed = in.is_replayed.sum().item<std::int64_t>(), own = in.count() - replayed;
  const auto part = [&](std::int64_t first, std::int64_t rows) {
    return row_part{.logits = in.logits.narrow(0, first, rows),
                    .labels = in.labels.narrow(0, first, rows),
                    .weight = in.weight.narrow(0, first, rows)};
  };
  const bool has_map = settings.anchors.size(1) > 0;
  const auto parts = part_weights_of(settings.old, settings.seen_classes);
  std::vector<at::Tensor> terms(4);
  if (const auto rows = part(0, own); own > 0) {
    const auto fresh = rows.logits.narrow(1, settings.old, settings.seen_classes - settings.old);
    terms[0] = weighted_sum(cross_entropy_rows(fresh, rows.labels - settings.old), rows.weight) * parts.fresh;
    if (has_map)
      terms[1] = anchoring_of(rows, settings) * parts.fresh;
  }
  if (replayed == 0)
    return terms;
  const auto rows = part(own, replayed);
  const auto teacher_output = in.teachers[0].logits.narrow(0, own, replayed);
  const auto old = distillation_rows(rows.logits.narrow(1, 0, settings.old), teacher_output.narrow(1, 0, settings.old),
                                     {.temperature = settings.temperature});
  terms[2] = weighted_sum(old, rows.weight) * parts.old;
  if (has_map)
    terms[3] = weighted_sum(map_rows(rows, teacher_output, settings), rows.weight) * parts.old;
  return terms;
}

} // namespace

loss_ref anchored_objective(const anchored_terms& settings) {
  return differentiable_objective(
      {.identity = fmt::format("anchored {} {} {} {} {} {} {}", settings.classes, settings.old, settings.seen_classes,
                               settings.anchoring, settings.radius, settings.temperature, settings.anchors.size(1)),
       .terms = {"cross_entropy", "anchoring", "distillation", "map_distillation"}},
      [settings](const loss_rows& in) { return anchored_values(in, settings); });
}

at::Tensor draw_anchors(std::int64_t classes, std::int64_t embedding, const rng_key& key) {
  constexpr double mean = 0.019, shared_variance = 0.143, own_variance = 0.041;
  auto anchors = at::empty({classes, embedding}, at::kFloat);
  rng_stream draw(key);
  std::vector<double> shared;
  for (std::int64_t i = 0; i < embedding; ++i)
    shared.push_back(mean + std::sqrt(shared_variance) * draw.normal());
  for (std::int64_t i = 0; i < anchors.numel(); ++i)
    anchors.mutable_data_ptr<float>()[i] =
        static_cast<float>(shared[static_cast<std::size_t>(i % embedding)] + std::sqrt(own_variance) * draw.normal());
  return anchors;
}

} // namespace mneme
