/// reference_cross_entropy: the loss with ATen operations, as reference for kernels.
#pragma once
#include "runtime/method/training.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

namespace mneme::test {

// Axes: K models, B rows of a step, C classes of the loss.

inline loss_output reference_cross_entropy(const loss_input& in) {
  const auto classes = in.logits.size(2);
  const auto log_p = at::log_softmax(in.logits, 2);                                            // [K, B, C]
  const auto truth = at::one_hot(in.labels.clamp_min(0), classes).to(in.logits.scalar_type()); // [K, B, C]
  const auto losses = -(log_p * truth).sum(2).to(at::kDouble) * in.row_weight.to(at::kDouble); // [K, B]
  const auto padded = in.row_weight == 0; // a padding row may hold NaN, and 0 * NaN is NaN
  return {.values = losses.masked_fill(padded, 0).sum(1),
          .d_logits = ((log_p.exp() - truth) * in.row_weight.unsqueeze(2)).masked_fill(padded.unsqueeze(2), 0)};
}

} // namespace mneme::test
