/// anchored_loss: the loss of LANDER's clients (Tran et al., CVPR 2024, and its official code).
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: B rows of a step, C classes of the run, O old classes, E numbers of an anchor.

/// Weights of the losses on new and on replayed rows: cur = 0.2 (1 + 1 / a) / b and pre = 0.4 a b, with a = log2(C_seen
/// / 2 + 1) and b = sqrt(C_old / C_seen). In the first task, new rows have weight 1.
struct part_weights {
  double fresh = 1.0, old = 0.0;
};
[[nodiscard]] part_weights part_weights_of(std::int64_t old_classes, std::int64_t seen_classes);

/// Parameters of the loss.
struct anchored_terms {
  std::int64_t classes = 0, old = 0, seen_classes = 0; ///< C, O, and all classes seen.
  double anchoring = 0.0;                              ///< l, the weight of the bounding loss.
  double radius = 0.0;      ///< r; the bounding loss is 0 if the mean distance of the batch is smaller.
  double temperature = 2.0; ///< Temperature of the distillation, which has no factor T^2.
  at::Tensor anchors{};     ///< [C, E]
};

/// Real rows: cross-entropy over the new classes, and l relu(mean over rows of |map - anchor|^2 / E - r), one hinge per
/// batch, as in the official code. Replayed rows, the last of a step: distillation over the old classes, and |map -
/// teacher's map|^2 / E. The outputs of student and teacher are the logits of C classes, followed by the map [E].
[[nodiscard]] loss_ref anchored_objective(const anchored_terms& terms);

/// Draws anchors [C, E] with the moments of the official text embeddings. The mean is 0.019. An anchor is the sum of a
/// part that all classes share, with variance 0.143, and a part of its own, with variance 0.041. The cosine between two
/// classes is 0.78, and their mean squared difference is 0.082, or 5.5 radii.
[[nodiscard]] at::Tensor draw_anchors(std::int64_t classes, std::int64_t embedding, const rng_key& key);

} // namespace mneme
