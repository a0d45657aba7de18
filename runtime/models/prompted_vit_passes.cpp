#include "runtime/models/prompted_vit.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
namespace mneme {

// Axes: B rows of a step, N tokens of an image, d channels of a token, H heads, n vectors of a prompt, k components.

/// Vectors that precede the keys and values of each block; undefined if a block has no prompt.
struct prompted_vit::prefixes {
  explicit prefixes(std::int64_t depth)
      : keys(static_cast<std::size_t>(depth)), values(static_cast<std::size_t>(depth)) {}
  std::vector<at::Tensor> keys, values; // [B, n / 2, d]
};

namespace {

constexpr double length_min = 1e-12; // the bound of PyTorch's normalize()

at::Tensor of_length_one(const at::Tensor& rows) { return rows / rows.norm(2, {-1}, true).clamp_min(length_min); }

/// mean((X X^T - I)^2), where the rows of X are the flattened `rows`.
at::Tensor distance_from_orthogonal(const at::Tensor& rows) {
  const auto flat = rows.flatten(1);
  return (at::matmul(flat, flat.t()) - at::eye(flat.size(0), flat.options())).pow(2).mean();
}

} // namespace

prompted_vit::model_results prompted_vit::apply(const model_pass& pass) const {
  at::Tensor query; // [B, d]
  {
    const at::AutoGradMode constant(false);
    query = class_token(pass, nullptr);
  }
  const auto before = prompts_for(pass, query);
  model_results results{
      .features = class_token(pass, [&](std::int64_t block, const at::Tensor&, attention_heads& heads) {
        const auto& keys = before.keys[static_cast<std::size_t>(block)];
        if (!keys.defined())
          return;
        heads.keys = at::cat({by_head(keys), heads.keys}, 2);
        heads.values = at::cat({by_head(before.values[static_cast<std::size_t>(block)]), heads.values}, 2);
      })};
  if (pass.classes.size() > 0)
    results.logits = at::linear(results.features, pass.values[head_], pass.values[head_ + 1]);
  for (const auto& name : pass.maps)
    results.maps.push_back(map_of(pass, name, query));
  return results;
}

// -- prompts ----------------------------------------------------------------------------------------------------------

prompted_vit::prefixes prompted_vit::prompts_for(const model_pass& pass, const at::Tensor& query) const {
  const auto rows = query.size(0);
  prefixes before(shape().depth);
  const auto put = [&](std::int64_t block, const at::Tensor& prompt) { // [B, n, d]
    const auto half = prompt.size(1) / 2;
    before.keys[static_cast<std::size_t>(block)] = prompt.narrow(1, 0, half);
    before.values[static_cast<std::size_t>(block)] = prompt.narrow(1, half, half);
  };
  for (std::size_t i = 0; i < general_.size(); ++i)
    put(prompts_.general[i], pass.values[general_[i]].unsqueeze(0).expand({rows, -1, -1}));
  for (std::size_t i = 0; i < pools_.size(); ++i)
    put(prompts_.blocks[i], prompts_.form == prompt_form::components ? join_components(pass, pools_[i], query)
                                                                     : choose_slots(pass, pools_[i], query));
  return before;
}

/// Components of the tasks so far. Components of earlier tasks receive no gradients.
at::Tensor prompted_vit::so_far(const model_pass& pass, std::size_t place) const {
  const auto& components = pass.values[place];
  const auto old = task_of(pass.classes) * prompts_.of_task;
  const auto fresh = components.narrow(0, old, prompts_.of_task);
  return old == 0 ? fresh : at::cat({components.narrow(0, 0, old).detach(), fresh});
}

/// Returns sum_k cos(q * A_k, K_k) P_k [B, n, d] (Smith et al. 2023, eqs. 3 to 6).
at::Tensor prompted_vit::join_components(const model_pass& pass, const pool& prompts, const at::Tensor& query) const {
  auto focus = so_far(pass, prompts.focus);
  if (prompts_.softmax_focus)
    focus = at::softmax(focus, -1);
  const auto focused = of_length_one(query.unsqueeze(1) * focus);                   // [B, k, d]
  const auto alpha = (focused * of_length_one(so_far(pass, prompts.keys))).sum(-1); // [B, k]
  return at::matmul(alpha, so_far(pass, prompts.values).flatten(1)).unflatten(1, {prompts_.length, shape().width});
}

/// Returns the task's slot in training, otherwise the slot whose key has the largest cosine with the query, [B, n, d]
/// (Wang et al. 2022, section 4.2).
at::Tensor prompted_vit::choose_slots(const model_pass& pass, const pool& prompts, const at::Tensor& query) const {
  const auto& slots = pass.values[prompts.values];
  const auto task = task_of(pass.classes);
  if (pass.training)
    return slots[task].unsqueeze(0).expand({query.size(0), -1, -1});
  const auto begun = pass.values[prompts.keys].narrow(0, 0, prompts_.all_slots ? tasks() : task + 1);
  return slots.index_select(0, at::matmul(of_length_one(query), of_length_one(begun).t()).argmax(1));
}

// -- maps -------------------------------------------------------------------------------------------------------------

/// Returns the map `name`, [B, 1, 1, 1].
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
