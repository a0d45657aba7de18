/// prompted_vit: a frozen vision transformer whose attention reads prompts that are learnt, and a head behind it.
///
/// Z. Wang et al., "DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning", ECCV 2022; J. Smith et
/// al., "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual Learning", CVPR 2023.
#pragma once
#include "runtime/models/frozen_vit.hpp"
#include "runtime/models/prompts.hpp"
namespace mneme {

// Axes: B rows of a step, d channels of a token, n vectors of a prompt.

/// Prompts and head follow the transformer's own parameters. The query q [d] of an image is its class token behind the
/// last norm of a pass without prompts, from which no gradient comes. A prompt of length n puts its first n / 2 vectors
/// before the keys of a block and the others before its values, as they are, and a second pass with prompts ends at the
/// class token, which the features are.
///
/// components: the prompt is sum_k alpha_k P_k over the tasks so far, alpha_k = cos(q * A_k, K_k); those of earlier
/// tasks are constants. slots: in training the slot of the task; else, block by block, the slot whose key has the
/// largest cosine with q. The task of a pass is the one whose classes its classes end with; of a pass over no classes
/// it is the last. Maps, [1, 1, 1] each: "match" (slots), the sum over blocks of 1 - cos(q, key of the task), and
/// "penalty" (components), the sum over blocks of mean((X X^T - I)^2) for X = K, A and P of the tasks so far.
class prompted_vit final : public frozen_vit {
public:
  /// @param body layout of the transformer without its head @param tasks classes of each task, at least one
  prompted_vit(vit_shape shape, prompt_shape prompts, const std::vector<parameter>& body,
               std::vector<class_range> tasks, std::int64_t classes);
  [[nodiscard]] std::string identity() const override;
  [[nodiscard]] std::vector<std::string> maps() const override;

  [[nodiscard]] const prompt_shape& prompts() const noexcept { return prompts_; }
  [[nodiscard]] std::int64_t tasks() const noexcept { return std::ssize(tasks_); }
  /// Places in the layout of P, K and A (components) or of slots and keys, for each of prompts().blocks.
  struct pool {
    std::size_t values = 0, keys = 0, focus = 0;
  };
  [[nodiscard]] const std::vector<pool>& pools() const noexcept { return pools_; }
  [[nodiscard]] const std::vector<std::size_t>& general() const noexcept { return general_; }

protected:
  [[nodiscard]] model_results apply(const model_pass& pass) const override;
  [[nodiscard]] std::int64_t row_floats() const override { return row_floats_with(prompts_.length); }

private:
  /// What stands before keys and values of each block, [B, n / 2, d]; undefined: nothing.
  struct prefixes;
  void add_pools();
  [[nodiscard]] std::int64_t task_of(class_range classes) const;
  [[nodiscard]] prefixes prompts_for(const model_pass& pass, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor joined_components(const model_pass& pass, const pool& prompts,
                                             const at::Tensor& query) const;
  [[nodiscard]] at::Tensor chosen_slots(const model_pass& pass, const pool& prompts, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor map_of(const model_pass& pass, const std::string& name, const at::Tensor& query) const;
  [[nodiscard]] at::Tensor penalty(const model_pass& pass) const;
  [[nodiscard]] at::Tensor so_far(const model_pass& pass, std::size_t place) const;

  prompt_shape prompts_;
  std::vector<class_range> tasks_;
  // Places in the layout.
  std::vector<pool> pools_;
  std::vector<std::size_t> general_;
  std::size_t head_ = 0;
};

} // namespace mneme
