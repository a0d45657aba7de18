/// pilora_parts: PILoRA's client loss and the weights of its server's mean of centers (Guo et al. 2024, and the
/// official code).
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/method/training_observer.hpp"
#include "runtime/models/low_rank_vit.hpp"
namespace mneme {

// Axes: d channels, r rank, t earlier tasks, K clients, n clients that have rows of a class.

/// Weights of the loss terms.
struct pilora_weights {
  double prototype = 0.001, sparsity = 0.01, orthogonality = 0.5;
};
/// Mean over rows of CE(-dist, y) + prototype * dist_y, where dist are the distances to the centers of all classes,
///     + sparsity * sum |A| + orthogonality * sum_{s < t} sum |A^s A^T| over the A of queries and values of all blocks.
///     The job's auxiliary tensors hold the earlier A^s, stacked as [t r, d], under the names of earlier_weight_name().
///     Without auxiliary tensors the last term is 0.
[[nodiscard]] loss_ref pilora_objective(const low_rank_vit& net, const pilora_weights& weights);
/// Name of the earlier A of a parameter: "earlier.lora.0.query.down".
[[nodiscard]] std::string earlier_weight_name(const parameter& down);

/// Records, for each class of the loss, the sum of the features of all rows in all training steps, and the number of
/// these rows: [classes, D] and [classes] float64.
[[nodiscard]] observation_ref class_feature_observation(std::int64_t classes);
inline constexpr const char *observed_feature_sums = "feature_sums", *observed_class_rows = "class_rows";

/// Weights of the clients' centers of one class, [K] float64 with sum 1. S_k is the sum of distances from center k to
/// the clients' mean features of the class. With r = 1 / S scaled to [0, 1], the weights are softmax(r / temperature).
/// They are uniform if no client has rows of the class or all S are equal (the official code then divides by zero).
/// @param centers [K, d] float64 @param means [n, d] float64
[[nodiscard]] at::Tensor center_weights(const at::Tensor& centers, const at::Tensor& means, double temperature);

} // namespace mneme
