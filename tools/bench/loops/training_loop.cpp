#include "tools/bench/loops/training_loop.hpp"
#include "runtime/base/rng.hpp"
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <cmath>
#include <functional>
#include <numeric>
namespace mneme::bench {
namespace {

/// Random streams of the benchmarks, distinguished by `part`.
enum class part : std::uint32_t { pixels, cohort, order, weights };
rng_stream stream_of(part kind, std::uint64_t round, std::uint64_t number) {
  return rng_stream({.seed = 1,
                     .purpose = static_cast<std::uint32_t>(kind),
                     .client = {static_cast<std::uint32_t>(number)},
                     .index = round});
}

std::int64_t pixels_of(const workload& load) {
  return std::accumulate(load.shape.begin(), load.shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// float32 normal draws divided by the square root of the fan-in; zeros for a shape with one axis.
at::Tensor first_weights(const std::vector<std::int64_t>& shape, std::int64_t fan_in, std::uint64_t number) {
  auto made = at::zeros(shape, at::kFloat);
  if (shape.size() < 2)
    return made;
  auto draw = stream_of(part::weights, number, 0);
  const double scale = 1.0 / std::sqrt(static_cast<double>(fan_in));
  for (auto* out = made.mutable_data_ptr<float>(); auto& value : std::span(out, static_cast<std::size_t>(made.numel())))
    value = static_cast<float>(scale * draw.normal());
  return made;
}

} // namespace

population make_population(const workload& load) {
  const auto rows = load.clients * load.rows, pixels = pixels_of(load);
  population made{.images = at::empty({rows, pixels}, at::kFloat), .labels = at::empty({rows}, at::kLong)};
  auto draw = stream_of(part::pixels, 0, 0);
  auto* image = made.images.mutable_data_ptr<float>();
  auto* label = made.labels.mutable_data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < rows; ++row) {
    label[row] = row % load.classes;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      *image++ = static_cast<float>(draw.bits32() & 255U) / 127.5F - 1.0F;
  }
  return made;
}

std::vector<std::int64_t> cohort_of(const workload& load, std::int64_t round) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(load.clients));
  std::iota(values.begin(), values.end(), 0);
  auto draw = stream_of(part::cohort, static_cast<std::uint64_t>(round), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(load.cohort); ++i)
    std::swap(values[i], values[i + draw.below(values.size() - i)]);
  values.resize(static_cast<std::size_t>(load.cohort));
  return values;
}

std::vector<std::int64_t> visiting_order(const workload& load, std::int64_t round, std::int64_t client) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(load.rows));
  std::iota(rows.begin(), rows.end(), client * load.rows);
  stream_of(part::order, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(client))
      .shuffle(std::span(rows));
  return rows;
}

std::vector<at::Tensor> first_mlp_weights(const workload& load) {
  const auto pixels = pixels_of(load);
  return {first_weights({load.hidden, pixels}, pixels, 0), first_weights({load.hidden}, 1, 1),
          first_weights({load.classes, load.hidden}, load.hidden, 2), first_weights({load.classes}, 1, 3)};
}

std::vector<at::Tensor> first_cnn_weights(const workload& load) {
  const auto channels = load.shape.at(0);
  const auto pooled = 64 * ((load.shape.at(1) - 4) / 2) * ((load.shape.at(2) - 4) / 2);
  return {first_weights({32, channels, 3, 3}, channels * 9, 0),
          first_weights({32}, 1, 1),
          first_weights({64, 32, 3, 3}, 32 * 9, 2),
          first_weights({64}, 1, 3),
          first_weights({128, pooled}, pooled, 4),
          first_weights({128}, 1, 5),
          first_weights({load.classes, 128}, 128, 6),
          first_weights({load.classes}, 1, 7)};
}

double norm_of(const std::vector<at::Tensor>& weights) {
  double squares = 0.0;
  for (const auto& tensor : weights)
    squares += std::pow(tensor.norm().item<double>(), 2);
  return std::sqrt(squares);
}

} // namespace mneme::bench
