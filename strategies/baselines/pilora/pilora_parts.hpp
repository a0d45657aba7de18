/// pilora_parts: what PILoRA's clients minimise, and how its server weighs their centres (Guo et al. 2024, and the
/// public code).
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/method/training_observer.hpp"
#include "runtime/models/low_rank_vit.hpp"
namespace mneme {

// Axes: d channels, r rank, t earlier tasks, K clients, n of them with rows of a class.

struct pilora_weights {
  double prototype = 0.001, sparsity = 0.01, orthogonality = 0.5;
};
/// Cross-entropy of minus the distances to all centres, + prototype * the distance to the own one, means over rows,
///     + sparsity * sum |A| + orthogonality * sum_{s < t} sum |A^s A^T|
/// over A of queries and values of all blocks. Earlier A^s, one below the other as [t r, d], are in the job's side
/// under earlier_name(); without a side the last term is none.
[[nodiscard]] loss_ref pilora_objective(const low_rank_vit& net, const pilora_weights& with);
/// "earlier.lora.0.query.down" of a parameter of the net's.
[[nodiscard]] std::string earlier_name(const parameter& down);

/// Records, per class of the loss, the sum of the features of all rows of all steps, as computed in training, and the
/// number of these rows: [classes, D] and [classes] float64.
[[nodiscard]] observation_ref class_feature_observation(std::int64_t classes);
inline constexpr const char *observed_feature_sums = "feature_sums", *observed_class_rows = "class_rows";

/// What each client's centre of a class counts for, [K] float64 that sum to 1: with S_k the sum of distances from
/// centre k to the clients' means of the class, r = 1 / S scaled to [0, 1], it is softmax(r / temperature). All the
/// same where no client has rows of the class, or where S cannot tell clients apart (the public code then divides by
/// zero).
/// @param centers [K, d] float64 @param means [n, d] float64
[[nodiscard]] at::Tensor center_weights(const at::Tensor& centers, const at::Tensor& means, double temperature);

} // namespace mneme
