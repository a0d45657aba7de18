#include "runtime/training/optimizer_calls.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
namespace mneme {
namespace {

using namespace kernels::cuda;

/// The run's rows of a tensor [K, P].
kernels::cuda::rows_of<float> rows_in(const at::Tensor& whole, model_run run) {
  if (!whole.defined())
    return {};
  MNEME_CHECK(whole.dim() == 2 && whole.stride(1) == 1 && run.first + run.count <= whole.size(0), whole.sizes(),
              whole.strides(), run.first, run.count);
  return {whole.mutable_data_ptr<float>() + run.first * whole.stride(0), whole.stride(0)};
}
kernels::cuda::rows_of<const float> constant(const kernels::cuda::rows_of<float>& rows) {
  return {rows.data, rows.pitch};
}

std::vector<piece_list> lists_of(std::span<const segment> trained) {
  std::vector<piece_list> lists;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    if (trained[i].size == 0)
      continue;
    if (lists.empty() || lists.back().count == pieces_max)
      lists.emplace_back();
    lists.back().at[lists.back().count++] = {trained[i].offset, trained[i].offset + trained[i].size};
  }
  return lists;
}

} // namespace

kernels::sgd_step sgd_step_of(const training_options& options, double rate) {
  return {.learning_rate = static_cast<float>(rate * options.learning_rate),
          .momentum = static_cast<float>(options.momentum),
          .weight_decay = static_cast<float>(options.weight_decay)};
}

kernels::adam_step adam_step_of(const training_options& options, double rate, std::int64_t t) {
  const bool decoupled = options.optimizer == optimizer_kind::adamw;
  const auto learning_rate = rate * options.learning_rate;
  const auto steps = static_cast<double>(t);
  return {.first = static_cast<float>(adam_first_decay),
          .second = static_cast<float>(adam_second_decay),
          .epsilon = static_cast<float>(adam_epsilon),
          .decay = decoupled ? 0.0F : static_cast<float>(options.weight_decay),
          .shrink = decoupled ? static_cast<float>(1.0 - learning_rate * options.weight_decay) : 1.0F,
          .step_size = static_cast<float>(learning_rate / (1.0 - std::pow(adam_first_decay, steps))),
          .root_correction = static_cast<float>(std::sqrt(1.0 - std::pow(adam_second_decay, steps)))};
}

std::vector<sgd_models> sgd_calls(const models_in_step& models, const training_options& options) {
  sgd_models call{.weights = rows_in(models.weights, models.run),
                  .gradients = constant(rows_in(models.gradients, models.run)),
                  .momentum = rows_in(models.first, models.run),
                  .models = models.run.count,
                  .with = sgd_step_of(options, models.rate())};
  call.quads = call.weights.has_quads() && call.gradients.has_quads() && call.momentum.has_quads();
  std::vector<sgd_models> calls;
  for (const auto& pieces : lists_of(models.trained)) {
    call.pieces = pieces;
    calls.push_back(call);
  }
  return calls;
}

std::vector<adam_models> adam_calls(const models_in_step& models, const training_options& options,
                                    std::span<const std::int64_t> step_of) {
  MNEME_CHECK(std::ssize(step_of) == models.run.count, step_of.size(), models.run.count);
  std::vector<adam_models> calls;
  for (std::int64_t done = 0; done < models.run.count; done += fused_clients_max) {
    const model_run run{.first = models.run.first + done,
                        .count = std::min<std::int64_t>(models.run.count - done, fused_clients_max)};
    adam_models call{.weights = rows_in(models.weights, run),
                     .gradients = constant(rows_in(models.gradients, run)),
                     .first = rows_in(models.first, run),
                     .second = rows_in(models.second, run),
                     .models = run.count,
                     .with = adam_step_of(options, models.rate(), 1)};
    call.quads =
        call.weights.has_quads() && call.gradients.has_quads() && call.first.has_quads() && call.second.has_quads();
    for (std::int64_t k = 0; k < run.count; ++k) {
      const auto* const t = &step_of[static_cast<std::size_t>(done + k)];
      if (k > 0 && *t == *(t - 1)) { // entries are usually equal, and powers are expensive
        call.rates[k] = call.rates[k - 1];
        continue;
      }
      const auto now = adam_step_of(options, models.rate(), *t);
      call.rates[k] = {.step_size = now.step_size, .root_correction = now.root_correction};
    }
    for (const auto& pieces : lists_of(models.trained)) {
      call.pieces = pieces;
      calls.push_back(call);
    }
  }
  return calls;
}

clip_calls calls_to_clip(const models_in_step& models, double norm_max, at::Tensor& partial, at::Tensor& factor) {
  MNEME_CHECK(partial.is_contiguous() && partial.numel() == models.run.count * norm_lanes && factor.is_contiguous() &&
                  factor.numel() == models.run.count,
              partial.sizes(), factor.sizes(), models.run.count);
  auto* const sums = partial.mutable_data_ptr<double>();
  auto* const factors = factor.mutable_data_ptr<float>();
  const auto gradients = rows_in(models.gradients, models.run);
  clip_calls calls{.factors = {.partial = sums,
                               .factor = factors,
                               .models = models.run.count,
                               .norm_max = norm_max,
                               .epsilon = clip_epsilon}};
  for (const auto& pieces : lists_of(models.trained)) {
    calls.squares.push_back(
        {.gradients = constant(gradients), .models = models.run.count, .pieces = pieces, .partial = sums});
    calls.scaled.push_back({.gradients = gradients,
                            .factor = factors,
                            .models = models.run.count,
                            .pieces = pieces,
                            .quads = gradients.has_quads()});
  }
  return calls;
}

} // namespace mneme
