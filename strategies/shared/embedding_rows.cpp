#include "strategies/shared/embedding_rows.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <algorithm>
#include <cmath>
#include <numeric>
namespace mneme {
namespace {

/// Copies columns [first, first + width) of every part's features into out [sum of n, width].
void copy_columns(std::span<const embedding_rows> parts, std::int64_t first, at::Tensor& out) {
  const auto width = out.size(1);
  auto* target = out.mutable_data_ptr<float>();
  for (const auto& part : parts) {
    const auto row = part.features.size(1);
    MNEME_CHECK(part.features.is_contiguous() && first + width <= row, part.features.sizes(), first, width);
    const auto* from = part.features.const_data_ptr<float>() + first;
    for (std::int64_t i = 0; i < part.size(); ++i, from += row, target += width)
      std::copy_n(from, width, target);
  }
}

} // namespace

embedding_rows embedding_rows::at(std::span<const std::int64_t> positions) const {
  const auto width = features.size(1), count = std::ssize(positions);
  embedding_rows chosen{.features = at::empty({count, width}, at::kFloat), .labels = at::empty({count}, at::kInt)};
  auto* const values = chosen.features.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto from = positions[static_cast<std::size_t>(i)];
    MNEME_CHECK(0 <= from && from < size(), from, size());
    std::copy_n(features.const_data_ptr<float>() + from * width, width, values + i * width);
    chosen.labels.mutable_data_ptr<std::int32_t>()[i] = labels.const_data_ptr<std::int32_t>()[from];
  }
  return chosen;
}

at::Tensor sampled(const embedding_rows& rows, const embedding_shape& shape, const rng_key& key) {
  const auto width = shape.embedding;
  MNEME_CHECK(rows.features.size(1) == 2 * width, rows.features.sizes(), width);
  auto samples = at::empty({rows.size(), width}, at::kFloat);
  rng_stream draw(key);
  const auto* feature = rows.features.const_data_ptr<float>();
  auto* value = samples.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < rows.size(); ++i, feature += 2 * width)
    for (std::int64_t d = 0; d < width; ++d) {
      const auto log = std::clamp<double>(feature[width + d], shape.low, shape.high);
      *value++ = static_cast<float>(feature[d] + std::exp(log) * draw.normal());
    }
  return samples;
}

sample_view training_set(std::span<const embedding_rows> parts, const embedding_shape& shape, bool points) {
  auto source = std::make_shared<dataset>();
  for (const auto& part : parts) {
    const auto* const labels = part.labels.const_data_ptr<std::int32_t>();
    source->labels.insert(source->labels.end(), labels, labels + part.size());
  }
  const auto rows = source->files_rows();
  source->vectors = at::empty({rows, shape.embedding}, at::kFloat);
  copy_columns(parts, 0, source->vectors);
  if (!points) {
    source->deviations = at::empty({rows, shape.embedding}, at::kFloat);
    copy_columns(parts, shape.embedding, source->deviations);
    source->deviations.clamp_(shape.low, shape.high).exp_();
  }
  auto positions = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(rows));
  std::iota(positions->begin(), positions->end(), 0);
  return {.source = std::move(source), .rows = std::move(positions)};
}

std::vector<std::int64_t> draw_positions(std::int64_t n, std::int64_t count, const rng_key& key) {
  MNEME_CHECK(n > 0 || count == 0, n, count);
  std::vector<std::int64_t> order(static_cast<std::size_t>(n)), drawn;
  rng_stream draw(key);
  while (std::ssize(drawn) < count) {
    const auto take = std::min(n, count - std::ssize(drawn));
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < take; ++i) { // these are the first `take` steps of a Fisher-Yates shuffle
      const auto from = i + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(n - i)));
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(from)]);
    }
    drawn.insert(drawn.end(), order.begin(), order.begin() + take);
  }
  return drawn;
}

std::int64_t share_of(double share, std::int64_t n) {
  if (share <= 0.0 || n == 0)
    return 0;
  return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(n)));
}

} // namespace mneme
