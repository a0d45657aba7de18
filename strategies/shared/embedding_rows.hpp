/// embedding_rows: labeled features from an encoder, and the training sets that are built from them.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/models/embedding_model.hpp"
#include <span>
namespace mneme {

// Axes: n rows, D numbers of an embedding, F features of the encoder. F is D for points, and 2 D for normal
// distributions (means and log deviations).

/// Features of labeled rows. A copy shares the tensors.
struct embedding_rows {
  at::Tensor features{}; ///< [n, F] float32 on the host
  at::Tensor labels{};   ///< [n] int32
  [[nodiscard]] std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
  /// Returns the rows at `positions`, in that order.
  [[nodiscard]] embedding_rows at(std::span<const std::int64_t> positions) const;
};

/// Draws one sample per row, z = mu + sigma e (arXiv 2110.09695, eq. 4). Returns [n, D].
/// @param rows means and log deviations
[[nodiscard]] at::Tensor sampled(const embedding_rows& rows, const embedding_shape& shape, const rng_key& key);

/// Concatenates all parts into a training set for a classifier. Points are copied. Normal distributions become means
/// and deviations, from which each epoch draws new samples.
/// @param points the parts hold points, even if the encoder produces normals
[[nodiscard]] sample_view training_set(std::span<const embedding_rows> parts, const embedding_shape& shape,
                                       bool points);

/// Draws `count` numbers from 0 .. n - 1 by `key`, without repetition. If count > n, each number is drawn once before
/// any is drawn again.
[[nodiscard]] std::vector<std::int64_t> draw_positions(std::int64_t n, std::int64_t count, const rng_key& key);

/// Returns share * n, rounded to the nearest integer and at least 1. Returns 0 if share or n is 0.
[[nodiscard]] std::int64_t share_of(double share, std::int64_t n);

} // namespace mneme
