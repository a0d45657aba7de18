/// prompted_vit: a frozen vision transformer with trained prompts in its attention and a trained head.
///
/// Z. Wang et al., "DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning", ECCV 2022; J. Smith et
/// al., "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual Learning", CVPR 2023.
#pragma once
#include "runtime/models/frozen_vit.hpp"
#include "runtime/models/prompts.hpp"
namespace mneme {

// Axes: B rows of a step, d channels of a token, n vectors of a prompt.

/// Prompts and head follow the transformer's parameters in the layout. The query q [d] of an image is its class token
/// after the last norm of a pass without prompts. Gradients do not flow through q. The features are the class token of
/// a second pass with prompts. A prompt of n vectors prepends the first n / 2 to the keys of a block and the others to
/// its values.
///
/// components: the prompt is sum_k alpha_k P_k over the tasks so far, with alpha_k = cos(q * A_k, K_k). Components of
/// earlier tasks receive no gradients. slots: the prompt is the slot of the task in training. In evaluation, the prompt
/// of each block is the slot whose key has the largest cosine with q. The task of a pass is the one that contains the
/// last of the pass's classes, or the last task if the pass has no classes.
///
/// Maps: "match" (slots) is the sum over blocks of 1 - cos(q, key of the task). "penalty" (components) is the sum over
/// blocks of mean((X X^T - I)^2) for X = K, A and P of the tasks so far. Each has one value per row.
class prompted_vit final : public frozen_vit {
public:
  /// @param body layout of the transformer without its head @param tasks classes of each task; at least one task
  prompted_vit(vit_shape shape, prompt_shape prompts, const std::vector<parameter>& body,
               std::vector<class_range> tasks, std::int64_t classes);
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::vector<std::string> maps() const override;

  [[nodiscard]] const prompt_shape& prompts() const noexcept { return prompts_; }
  [[nodiscard]] std::int64_t tasks() const noexcept { return std::ssize(tasks_); }
  /// Layout indices of P, K and A (components), or of slots and keys, for each of prompts().blocks.
  struct pool {
    std::size_t values = 0, keys = 0, focus = 0;
  };
  [[nodiscard]] const std::vector<pool>& pools() const noexcept { return pools_; }
  [[nodiscard]] const std::vector<std::size_t>& general() const noexcept { return general_; }

protected:
  [[nodiscard]] model_results apply(const model_pass& pass) const override;
  [[nodiscard]] std::int64_t row_floats() const override { return row_floats_with(prompts_.length); }

private:
  /// Vectors that precede the keys and values of each block, [B, n / 2, d]; undefined: none.
  struct prefixes;
  void add_pools();
  [[nodiscard]] std::int64_t task_of(class_range classes) const;
  [[nodiscard]] prefixes prompts_for(const model_pass& pass, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor join_components(const model_pass& pass, const pool& prompts, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor choose_slots(const model_pass& pass, const pool& prompts, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor map_of(const model_pass& pass, const std::string& name, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor penalty(const model_pass& pass) const;
  [[nodiscard]] at::Tensor so_far(const model_pass& pass, std::size_t place) const;

  prompt_shape prompts_;
  std::vector<class_range> tasks_;
  // Layout indices.
  std::vector<pool> pools_;
  std::vector<std::size_t> general_;
  std::size_t head_ = 0;
};

} // namespace mneme
