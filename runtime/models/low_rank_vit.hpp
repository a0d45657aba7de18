/// low_rank_vit: a frozen vision transformer with low-rank adapters in its attention and a center per class.
///
/// H. Guo et al., "PILoRA: Prototype
/// Guided Incremental LoRA for Federated Class-Incremental Learning", ECCV 2024.
#pragma once
#include "runtime/models/frozen_vit.hpp"
#include "runtime/models/prompts.hpp"
namespace mneme {

// Axes: B rows of a step, d channels of a token, r rank, C classes.

/// In each chosen block q += B_q A_q x and v += B_v A_v x, with A [r, d] and B [d, r]; keys are unchanged. A is drawn
/// from U(-1 / sqrt(d), 1 / sqrt(d)) and B is zero, so the initial features equal the transformer's bit for bit. Logits
/// are -|f - c| / sqrt(d) for the class centers c [d], which are drawn from N(0, 0.1^2).
class low_rank_vit final : public frozen_vit {
public:
  /// @param body layout of the transformer without its head
  low_rank_vit(vit_shape shape, prompt_shape parts, const std::vector<parameter>& body, std::int64_t classes);
  [[nodiscard]] std::string identity() const override;

  /// Layout indices of A and B of a block's queries and values.
  struct places {
    std::int64_t block = 0;
    std::size_t query_down = 0, query_up = 0, value_down = 0, value_up = 0;
  };
  [[nodiscard]] const std::vector<places>& parts() const noexcept { return parts_; }
  /// Layout index of the class centers.
  [[nodiscard]] std::size_t centers() const noexcept { return centers_; }
  [[nodiscard]] std::int64_t rank() const noexcept { return shape_of_parts_.rank; }

  /// Name prefix of the low-rank layers.
  static constexpr const char* layers = "lora";

protected:
  [[nodiscard]] model_results apply(const model_pass& pass) const override;
  [[nodiscard]] std::int64_t row_floats() const override { return row_floats_with(0); }

private:
  prompt_shape shape_of_parts_;
  std::vector<places> parts_;
  std::size_t centers_ = 0;
};

/// Returns |f - c| / sqrt(d) for each row and center, [B, C]. The gradient is 0 where both are equal.
/// @param features [B, d] @param centers [C, d]
[[nodiscard]] at::Tensor distances_to_centers(const at::Tensor& features, const at::Tensor& centers);

} // namespace mneme
