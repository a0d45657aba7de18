/// low_rank_vit: a frozen vision transformer with low-rank parts in its attention, and a centre per class behind it.
///
/// E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022; H. Guo et al., "PILoRA: Prototype
/// Guided Incremental LoRA for Federated Class-Incremental Learning", ECCV 2024.
#pragma once
#include "runtime/models/frozen_vit.hpp"
#include "runtime/models/prompts.hpp"
namespace mneme {

// Axes: B rows of a step, d channels of a token, r rank, C classes.

/// In each of some blocks q += B_q A_q x and v += B_v A_v x, with A [r, d] and B [d, r]; keys stay as they are. A is
/// drawn from U(-1 / sqrt(d), 1 / sqrt(d)), B is zeros: the net begins as the transformer itself, to the bit. Logits
/// are -|f - c| / sqrt(d) by the centres c [d] of the classes, which begin as 0.1 N(0, 1).
class low_rank_vit final : public frozen_vit {
public:
  /// @param body layout of the transformer without its head
  low_rank_vit(vit_shape shape, prompt_shape parts, const std::vector<parameter>& body, std::int64_t classes);
  [[nodiscard]] std::string identity() const override;

  /// Places in the layout of A and B of a block's queries and values.
  struct places {
    std::int64_t block = 0;
    std::size_t query_down = 0, query_up = 0, value_down = 0, value_up = 0;
  };
  [[nodiscard]] const std::vector<places>& parts() const noexcept { return parts_; }
  [[nodiscard]] std::size_t centers() const noexcept { return centers_; }
  [[nodiscard]] std::int64_t rank() const noexcept { return shape_of_parts_.rank; }

  /// What layers of the low-rank parts are called.
  static constexpr const char* layers = "lora";

protected:
  [[nodiscard]] model_results apply(const model_pass& pass) const override;
  [[nodiscard]] std::int64_t row_floats() const override { return row_floats_with(0); }

private:
  prompt_shape shape_of_parts_;
  std::vector<places> parts_;
  std::size_t centers_ = 0;
};

/// |f - c| / sqrt(d) of each row and centre, [B, C]; the gradient where both are the same is 0. @param features [B, d]
/// @param centers [C, d]
[[nodiscard]] at::Tensor distances_to_centers(const at::Tensor& features, const at::Tensor& centers);

} // namespace mneme
