#include "runtime/models/prompted_vit.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <cmath>
namespace mneme {

// Axes: B rows of a step, N tokens of an image, d channels of a token, H heads, n vectors of a prompt, k components.

/// [block], keys and values; undefined: the block has none.
struct prompted_vit::prefixes {
  explicit prefixes(std::int64_t depth)
      : keys(static_cast<std::size_t>(depth)), values(static_cast<std::size_t>(depth)) {}
  std::vector<at::Tensor> keys, values; // [B, n / 2, d]
};

namespace {

/// Where a block's parts begin, behind its first parameter: weight and bias.
struct vit_part {
  static constexpr std::size_t norm1 = 0, queries_keys_values = 2, projection = 4, norm2 = 6, hidden = 8, out = 10;
};
constexpr double vit_epsilon = 1e-6;
constexpr double length_min = 1e-12; // PyTorch's normalize

at::Tensor vit_norm(std::span<const at::Tensor> part, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, part[0], part[1], vit_epsilon);
}

at::Tensor vit_linear(std::span<const at::Tensor> part, const at::Tensor& x) { return at::linear(x, part[0], part[1]); }

at::Tensor of_length_one(const at::Tensor& rows) { return rows / rows.norm(2, {-1}, true).clamp_min(length_min); }

/// mean((X X^T - I)^2) over rows of X, each flattened.
at::Tensor distance_from_orthogonal(const at::Tensor& rows) {
  const auto flat = rows.flatten(1);
  return (at::matmul(flat, flat.t()) - at::eye(flat.size(0), flat.options())).pow(2).mean();
}

} // namespace

prompted_vit::model_results prompted_vit::apply(const model_pass& pass) const {
  at::Tensor query; // [B, d]
  {
    const at::AutoGradMode constant(false);
    query = class_token(pass, prefixes(shape_.depth));
  }
  model_results results{.features = class_token(pass, prompts_for(pass, query))};
  if (pass.classes.size() > 0)
    results.logits = vit_linear(pass.values.subspan(head_), results.features);
  for (const auto& name : pass.maps)
    results.maps.push_back(map_of(pass, name, query));
  return results;
}

// -- the transformer --------------------------------------------------------------------------------------------------

/// [B, N, d]: the class token and the patches, with what their positions add.
at::Tensor prompted_vit::embedded(const model_pass& pass) const {
  const auto part = pass.values.subspan(embedding_); // class token, positions, weight, bias
  const auto p = shape_.patch;
  auto images = pass.images.to(part[2].scalar_type());
  if (shape_.resized != std::array{shape_.input[1], shape_.input[2]})
    images = at::upsample_bilinear2d(images, {shape_.resized[0], shape_.resized[1]}, false);
  const auto cut = images.unflatten(3, {shape_.resized[1] / p, p})
                       .unflatten(2, {shape_.resized[0] / p, p})
                       .permute({0, 2, 4, 1, 3, 5}) // [B, lines, columns, C, p, p]
                       .flatten(3)
                       .flatten(1, 2);
  const auto patches = at::linear(cut, part[2].flatten(1), part[3]);
  return at::cat({part[0].view({1, 1, -1}).expand({images.size(0), 1, shape_.width}), patches}, 1) +
         part[1].view({1, tokens(), shape_.width});
}

/// The class token behind the last norm, [B, d].
at::Tensor prompted_vit::class_token(const model_pass& pass, const prefixes& before) const {
  auto x = embedded(pass);
  for (std::int64_t i = 0; i < shape_.depth; ++i) {
    const auto part = pass.values.subspan(blocks_[static_cast<std::size_t>(i)]);
    const auto mixed = attention(pass, i, x, before);
    if (i + 1 == shape_.depth)
      x = x.narrow(1, 0, 1); // all that is read of the last block
    x = x + mixed;
    const auto hidden =
        at::gelu(vit_linear(part.subspan(vit_part::hidden), vit_norm(part.subspan(vit_part::norm2), x)));
    x = x + vit_linear(part.subspan(vit_part::out), hidden);
  }
  return vit_norm(pass.values.subspan(norm_), x.select(1, 0));
}

/// What a block's attention adds, [B, N, d]; of the last block, to the class token alone.
at::Tensor prompted_vit::attention(const model_pass& pass, std::int64_t block, const at::Tensor& x,
                                   const prefixes& before) const {
  const auto part = pass.values.subspan(blocks_[static_cast<std::size_t>(block)]);
  const auto head_width = shape_.width / shape_.heads;
  const auto by_head = [&](const at::Tensor& rows) { // [B, .., d] -> [B, H, .., d / H]
    return rows.unflatten(-1, {shape_.heads, head_width}).transpose(1, 2);
  };
  const auto own =
      vit_linear(part.subspan(vit_part::queries_keys_values), vit_norm(part.subspan(vit_part::norm1), x)).chunk(3, -1);
  auto queries = by_head(own[0]), keys = by_head(own[1]), values = by_head(own[2]);
  const auto& key_prefix = before.keys[static_cast<std::size_t>(block)];
  if (key_prefix.defined()) {
    keys = at::cat({by_head(key_prefix), keys}, 2);
    values = at::cat({by_head(before.values[static_cast<std::size_t>(block)]), values}, 2);
  }
  if (block + 1 == shape_.depth)
    queries = queries.narrow(2, 0, 1);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_width));
  const auto shares = at::softmax(at::matmul(queries, keys.transpose(-2, -1)) * scale, -1);
  const auto mixed = at::matmul(shares, values).transpose(1, 2).flatten(2);
  return vit_linear(part.subspan(vit_part::projection), mixed);
}

// -- prompts ----------------------------------------------------------------------------------------------------------

prompted_vit::prefixes prompted_vit::prompts_for(const model_pass& pass, const at::Tensor& query) const {
  const auto rows = query.size(0);
  prefixes before(shape_.depth);
  const auto put = [&](std::int64_t block, const at::Tensor& prompt) { // [B, n, d]
    const auto half = prompt.size(1) / 2;
    before.keys[static_cast<std::size_t>(block)] = prompt.narrow(1, 0, half);
    before.values[static_cast<std::size_t>(block)] = prompt.narrow(1, half, half);
  };
  for (std::size_t i = 0; i < general_.size(); ++i)
    put(prompts_.general[i], pass.values[general_[i]].unsqueeze(0).expand({rows, -1, -1}));
  for (std::size_t i = 0; i < pools_.size(); ++i)
    put(prompts_.blocks[i], prompts_.form == prompt_form::components ? joined_components(pass, pools_[i], query)
                                                                     : chosen_slots(pass, pools_[i], query));
  return before;
}

/// The components of the tasks so far; those of earlier tasks are constants.
at::Tensor prompted_vit::so_far(const model_pass& pass, std::size_t place) const {
  const auto& components = pass.values[place];
  const auto old = task_of(pass.classes) * prompts_.of_task;
  const auto fresh = components.narrow(0, old, prompts_.of_task);
  return old == 0 ? fresh : at::cat({components.narrow(0, 0, old).detach(), fresh});
}

/// sum_k cos(q * A_k, K_k) P_k [B, n, d] (Smith et al. 2023, eqs. 3 to 6).
at::Tensor prompted_vit::joined_components(const model_pass& pass, const pool& prompts, const at::Tensor& query) const {
  auto focus = so_far(pass, prompts.focus);
  if (prompts_.softmax_focus)
    focus = at::softmax(focus, -1);
  const auto focused = of_length_one(query.unsqueeze(1) * focus);                   // [B, k, d]
  const auto alpha = (focused * of_length_one(so_far(pass, prompts.keys))).sum(-1); // [B, k]
  return at::matmul(alpha, so_far(pass, prompts.values).flatten(1)).unflatten(1, {prompts_.length, shape_.width});
}

/// The slot of the task in training, else the one whose key fits best, [B, n, d] (Wang et al. 2022, section 4.2).
at::Tensor prompted_vit::chosen_slots(const model_pass& pass, const pool& prompts, const at::Tensor& query) const {
  const auto& slots = pass.values[prompts.values];
  const auto task = task_of(pass.classes);
  if (pass.training)
    return slots[task].unsqueeze(0).expand({query.size(0), -1, -1});
  const auto begun = pass.values[prompts.keys].narrow(0, 0, prompts_.all_slots ? tasks() : task + 1);
  return slots.index_select(0, at::matmul(of_length_one(query), of_length_one(begun).t()).argmax(1));
}

// -- maps -------------------------------------------------------------------------------------------------------------

/// [B, 1, 1, 1]
at::Tensor prompted_vit::map_of(const model_pass& pass, const std::string& name, const at::Tensor& query) const {
  const auto rows = query.size(0);
  if (name == "penalty")
    return penalty(pass).view({1, 1, 1, 1}).expand({rows, 1, 1, 1});
  auto sum = at::zeros({rows}, query.options());
  for (const auto& prompts : pools_) {
    const auto key = of_length_one(pass.values[prompts.keys][task_of(pass.classes)]);
    sum = sum + (1.0 - at::matmul(of_length_one(query), key));
  }
  return sum.view({rows, 1, 1, 1});
}

at::Tensor prompted_vit::penalty(const model_pass& pass) const {
  auto sum = at::zeros({}, pass.values[head_].options());
  for (const auto& prompts : pools_)
    for (const auto place : {prompts.keys, prompts.focus, prompts.values})
      sum = sum + distance_from_orthogonal(so_far(pass, place));
  return sum;
}

} // namespace mneme
