#include "strategies/baselines/dytox/convit.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <cmath>
namespace mneme {

// Axes: B rows of a step, N patches of an image, d channels of a token, H attention heads, K tokens of a forward pass.

namespace {

/// Index of each part, counted from the first parameter of its block. A part is a weight, followed by its bias if it
/// has one.
struct encoder_part {
  static constexpr std::size_t norm = 0, queries_keys = 2, values = 3, projection = 4, directions = 6, gate = 8,
                               mlp = 9, count = 15;
};
struct decoder_part {
  static constexpr std::size_t norm = 0, queries = 2, keys = 3, values = 4, projection = 5, mlp = 7, count = 13;
};

at::Tensor layer_normed(std::span<const at::Tensor> norm, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, norm[0], norm[1], 1e-5);
}

at::Tensor biased_linear(std::span<const at::Tensor> layer, const at::Tensor& x) {
  return at::linear(x, layer[0], layer[1]);
}

/// LayerNorm and an MLP with one GELU layer. @param parts norm, first and second linear layer
at::Tensor normed_mlp(std::span<const at::Tensor> parts, const at::Tensor& x) {
  return biased_linear(parts.subspan(4), at::gelu(biased_linear(parts.subspan(2), layer_normed(parts, x))));
}

/// Splits channels by head: [.., tokens, d] -> [.., H, tokens, d / H].
at::Tensor by_head(const at::Tensor& rows, std::int64_t heads) {
  return rows.unflatten(-1, {heads, rows.size(-1) / heads}).transpose(-3, -2);
}

/// Divergence head: newest [B, d] -> [B, outputs, 1, 1]. @param parts norm and linear layer
at::Tensor divergence_map(std::span<const at::Tensor> parts, const at::Tensor& newest) {
  return biased_linear(parts.subspan(2), layer_normed(parts, newest)).unsqueeze(-1).unsqueeze(-1);
}

} // namespace

convit::model_results convit::apply(const model_pass& pass) const {
  auto x = patches(pass); // [B, N, d]
  for (std::int64_t i = 0; i < shape_.depth; ++i) {
    const auto first = blocks_[static_cast<std::size_t>(i)];
    x = x + apply_drop_path(pass, i, 0, self_attention(pass, first, x));
    x = x + apply_drop_path(pass, i, 1, normed_mlp(pass.values.subspan(first + encoder_part::mlp), x));
  }

  const auto asked = tasks_of(pass.classes);
  std::vector<at::Tensor> listed;
  for (auto k = asked.low; k < asked.high; ++k)
    listed.push_back(pass.values[tokens_ + static_cast<std::size_t>(k)]);
  const auto tokens = at::stack(listed); // [K, d]
  const auto last = shape_.depth;
  auto e = tokens + apply_drop_path(pass, last, 0, class_attention(pass, tokens, x)); // [B, K, d]
  e = e + apply_drop_path(pass, last, 1, normed_mlp(pass.values.subspan(decoder_ + decoder_part::mlp), e));

  model_results results{.features = e.flatten(1)};
  const auto rows = pass.images.size(0), d = shape_.width;
  if (asked.size() < tasks())
    results.features = at::cat({at::zeros({rows, asked.low * d}, e.options()), results.features,
                                at::zeros({rows, (tasks() - asked.high) * d}, e.options())},
                               1);
  if (pass.classes.size() > 0)
    results.logits = logits(pass, e, asked);
  for (std::size_t m = 0; m < pass.maps.size(); ++m)
    results.maps.push_back(divergence_map(pass.values.subspan(divergence_), e.select(1, e.size(1) - 1)));
  return results;
}

/// Embeds the patches and adds positional embeddings: [B, N, d].
at::Tensor convit::patches(const model_pass& pass) const {
  const auto p = shape_.patch;
  const auto cut = pass.images.to(pass.values[0].scalar_type())
                       .unflatten(3, {columns_, p})
                       .unflatten(2, {rows_, p})
                       .permute({0, 2, 4, 1, 3, 5}) // [B, rows, columns, C, p, p]
                       .flatten(3)
                       .flatten(1, 2);
  return at::linear(cut, pass.values[0].flatten(1), pass.values[1]) + pass.values[2];
}

at::Tensor convit::self_attention(const model_pass& pass, std::size_t first, const at::Tensor& x) const {
  const auto part = pass.values.subspan(first);
  const auto heads = shape_.heads;
  const auto normed = layer_normed(part.subspan(encoder_part::norm), x);
  const auto queries_keys = at::linear(normed, part[encoder_part::queries_keys]).chunk(2, -1);
  const auto head_width = shape_.width / heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
  const auto scores =
      at::matmul(by_head(queries_keys[0], heads), by_head(queries_keys[1], heads).transpose(-2, -1)) * scale;
  auto attention = at::softmax(scores, -1); // [B, H, N, N]
  if (shape_.gated) {
    const auto away = places_.to(x.options());
    const auto by_place =
        at::softmax(biased_linear(part.subspan(encoder_part::directions), away).permute({2, 0, 1}), -1);
    const auto gate = at::sigmoid(part[encoder_part::gate]).view({-1, 1, 1});
    attention = (1.0 - gate) * attention + gate * by_place;
    attention = attention / attention.sum(-1, true);
  }
  const auto mixed = at::matmul(attention, by_head(at::linear(normed, part[encoder_part::values]), heads));
  return biased_linear(part.subspan(encoder_part::projection), mixed.transpose(1, 2).flatten(2));
}

/// Attention of each token to itself and the patches, but not to other tokens: [B, K, d].
at::Tensor convit::class_attention(const model_pass& pass, const at::Tensor& tokens, const at::Tensor& x) const {
  const auto part = pass.values.subspan(decoder_);
  const auto heads = shape_.heads;
  const auto own = layer_normed(part.subspan(decoder_part::norm), tokens); // [K, d]
  const auto shown = layer_normed(part.subspan(decoder_part::norm), x);
  const auto head_width = shape_.width / heads;
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
  const auto queries = by_head(at::linear(own, part[decoder_part::queries]), heads) * scale; // [H, K, d / H]
  const auto own_keys = by_head(at::linear(own, part[decoder_part::keys]), heads);
  const auto own_values = by_head(at::linear(own, part[decoder_part::values]), heads);
  const auto scores = at::matmul(
      queries, by_head(at::linear(shown, part[decoder_part::keys]), heads).transpose(-2, -1)); // [B, H, K, N]
  const auto own_scores = (queries * own_keys).sum(-1, true).expand({x.size(0), -1, -1, -1});
  const auto attention = at::softmax(at::cat({own_scores, scores}, -1), -1);
  const auto of_patches = attention.narrow(-1, 1, scores.size(-1));
  const auto mixed = attention.narrow(-1, 0, 1) * own_values +
                     at::matmul(of_patches, by_head(at::linear(shown, part[decoder_part::values]), heads));
  return biased_linear(part.subspan(decoder_part::projection), mixed.transpose(1, 2).flatten(2));
}

/// Stochastic depth: drops a branch x [B, tokens, d] for some rows, or in the decoder for some tokens. The kept values
/// are scaled by 1 / (1 - p).
at::Tensor convit::apply_drop_path(const model_pass& pass, std::int64_t block, std::int64_t branch,
                                   const at::Tensor& x) const {
  const bool decodes = block == shape_.depth;
  const auto rate = shape_.drop_path * static_cast<double>(block) / static_cast<double>(shape_.depth);
  const auto first = decodes ? decoder_ : blocks_[static_cast<std::size_t>(block)];
  const auto* const trained = pass.training ? pass.training->trained : nullptr;
  const bool trains =
      pass.training && (!trained || trained->whole() || trained->updates_running_stats() ||
                        trained->changes_any(first, first + (decodes ? decoder_part::count : encoder_part::count)));
  if (!trains || rate == 0.0)
    return x;
  auto key = pass.stream;
  key.index = key.index << 8U | static_cast<std::uint64_t>(2 * block + branch);
  rng_stream draw(key);
  auto factors = at::empty({x.size(0), decodes ? x.size(1) : 1, 1}, at::kDouble);
  auto* const values = factors.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < factors.numel(); ++i)
    values[i] = draw.uniform() < rate ? 0.0 : 1.0 / (1.0 - rate);
  return x * factors.to(x.options());
}

/// Logits of the forward pass's classes: [B, classes]. @param e [B, K, d] outputs of `tasks`
at::Tensor convit::logits(const model_pass& pass, const at::Tensor& e, class_range tasks) const {
  std::vector<at::Tensor> blocks;
  for (auto k = tasks.low; k < tasks.high; ++k) {
    const auto& own = shape_.tasks[static_cast<std::size_t>(k)];
    const auto low = std::max(own.low, pass.classes.low), rows = std::min(own.high, pass.classes.high) - low;
    const auto norm = pass.values.subspan(norms_ + 2 * static_cast<std::size_t>(k));
    const auto part = [&](std::size_t place) { return pass.values[place].narrow(0, low - pass.classes.low, rows); };
    blocks.push_back(at::linear(layer_normed(norm, e.select(1, k - tasks.low)), part(head_), part(head_ + 1)));
  }
  return at::cat(blocks, 1);
}

} // namespace mneme
