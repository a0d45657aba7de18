/// anchored_loss: what LANDER's clients minimise (Tran et al. 2024, from their public code).
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/training.hpp"
namespace mneme {

// Axes: B rows of a step, C classes of the run, O of them old, E numbers of an anchor.

/// How the part of new rows and that of replayed ones are weighed: cur = 0.2 (1 + 1 / a) / b and pre = 0.4 a b, with
/// a = log2(C_seen / 2 + 1), b = sqrt(C_old / C_seen). In the first task new rows weigh 1.
struct part_weights {
  double fresh = 1.0, old = 0.0;
};
[[nodiscard]] part_weights part_weights_of(std::int64_t old_classes, std::int64_t seen_classes);

struct anchored_terms {
  std::int64_t classes = 0, old = 0, opened = 0; ///< C, O, and those opened, the new ones included.
  double anchoring = 0.0;                        ///< l, the weight of the bounding loss.
  double radius = 0.0;                           ///< r: where the batch is nearer on average, nothing pulls.
  double temperature = 2.0;                      ///< The distillation's; it is not multiplied by its square.
  at::Tensor anchors{};                          ///< [C, E]
};

/// New rows: cross-entropy over the new classes, and l relu(mean over rows of |map - anchor|^2 / E - r), one hinge for
/// the batch, as the public code has it. The last rows of a step, which are replayed: distillation of the old classes,
/// and |map - map of the teacher|^2 / E. Logits, those of the teacher included, are those of C classes, then the map.
[[nodiscard]] loss_ref anchored_objective(const anchored_terms& terms);

/// Anchors [C, E] like the released table of text embeddings: of mean 0.019, a part that all classes share, of variance
/// 0.143, and one of each class, of 0.041. So cosines are 0.78, and mean squares between classes 0.082: 5.5 radii.
[[nodiscard]] at::Tensor drawn_anchors(std::int64_t classes, std::int64_t embedding, const rng_key& key);

} // namespace mneme
