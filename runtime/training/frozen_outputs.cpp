#include "runtime/training/frozen_outputs.hpp"
#include "runtime/models/layer.hpp"
#include "runtime/training/inference.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <algorithm>
#include <numeric>
namespace mneme {
namespace {

/// Copies the rows of `from` [1, m, W] to the rows `positions` of `to` [n, W].
void scatter(const at::Tensor& from, std::span<const std::int64_t> positions, at::Tensor& to) {
  const auto width = from.size(2);
  const auto* row = from.const_data_ptr<float>();
  for (const auto position : positions) {
    std::copy_n(row, width, to.mutable_data_ptr<float>() + position * width);
    row += width;
  }
}

void copy_rows(const at::Tensor& from, std::span<const std::int64_t> positions, std::int64_t padded, float* to) {
  const auto width = from.size(1);
  for (const auto position : positions)
    to = std::copy_n(from.const_data_ptr<float>() + position * width, width, to);
  std::fill_n(to, (padded - std::ssize(positions)) * width, 0.0F);
}

} // namespace

void teacher_rows::copy_to(std::span<const std::int64_t> positions, std::int64_t padded, float* features_to,
                           float* logits_to) const {
  if (features_to)
    copy_rows(features, positions, padded, features_to);
  if (logits_to)
    copy_rows(logits, positions, padded, logits_to);
}

bool frozen_outputs::may_keep(const training_options& options, const train_job& job) {
  return options.augment == augmentation_kind::none && options.replay_rows == 0 && options.maps.empty() &&
         !job.samples.source->deviations.defined();
}

bool frozen_outputs::has_frozen_front() const { return options_.epochs > 0 && net_.trains_after_features(trained_); }

/// Computes the net's outputs for the rows at `positions`, block by block, into the defined tensors of `to`.
void frozen_outputs::show(const sample_view& samples, std::span<const std::int64_t> positions,
                          const at::Tensor& weights, class_range classes, image_store& images, teacher_rows& to) {
  const auto [channels, height, width] = samples.source->shape();
  const auto block_rows = static_cast<std::size_t>(block_rows_of(net_));
  if (!inputs_.defined())
    inputs_ = at::empty({0}, at::kFloat);
  kept_.for_backward = false;
  for (; !positions.empty(); positions = positions.subspan(std::min(block_rows, positions.size()))) {
    const auto block = positions.first(std::min(block_rows, positions.size()));
    std::vector<std::int64_t> rows;
    for (const auto position : block)
      rows.push_back((*samples.rows)[static_cast<std::size_t>(position)]);
    reshape_buffer(inputs_, {1, std::ssize(rows), channels, height, width}, inputs_);
    auto listed = inputs_.flatten(0, 1);
    images.gather_into(listed, samples.source, rows, {});
    const auto outputs = net_.forward(weights.unsqueeze(0), inputs_, classes, &kept_);
    if (to.features.defined())
      scatter(outputs.features, block, to.features);
    if (to.logits.defined())
      scatter(outputs.logits, block, to.logits);
  }
}

sample_view frozen_outputs::features_of_frozen(const sample_view& samples, const at::Tensor& weights,
                                               image_store& images) {
  const auto n = samples.size();
  auto places = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(n));
  std::iota(places->begin(), places->end(), 0);
  auto features = std::make_shared<dataset>();
  teacher_rows shown{.features = at::empty({n, net_.feature_width()}, at::kFloat)};
  show(samples, *places, weights, {}, images, shown);
  features->vectors = std::move(shown.features);
  for (const auto row : *samples.rows)
    features->labels.push_back(samples.source->label(row));
  return {.source = std::move(features), .rows = std::move(places), .marks = samples.marks};
}

teacher_rows frozen_outputs::find_teacher_rows(const sample_view& samples, const teacher_view& view,
                                               const at::Tensor& teacher, image_store& images) {
  const auto n = samples.size();
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto label = samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]) - options_.classes.low;
    if (view.only_labels.size() == 0 || (view.only_labels.low <= label && label < view.only_labels.high))
      positions.push_back(i);
  }
  teacher_rows taught;
  if (view.features)
    taught.features = at::zeros({n, net_.feature_width()}, at::kFloat);
  if (view.classes.size() > 0)
    taught.logits = at::zeros({n, view.classes.size()}, at::kFloat);
  show(samples, positions, teacher, view.classes, images, taught);
  return taught;
}

} // namespace mneme
