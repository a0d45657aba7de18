/// embedding_rows: what an encoder has made of rows, and training sets put together from it.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/models/embedding_model.hpp"
#include <span>
namespace mneme {

// Axes: n rows, D numbers of an embedding, F features of the encoder: D, or 2 D (means and log deviations).

/// Features of labelled rows. Cheap to copy.
struct embedding_rows {
  at::Tensor features{}; ///< [n, F] float32 on the host
  at::Tensor labels{};   ///< [n] int32
  [[nodiscard]] std::int64_t size() const { return labels.defined() ? labels.size(0) : 0; }
  /// Those at `positions`, in their order.
  [[nodiscard]] embedding_rows at(std::span<const std::int64_t> positions) const;
};

/// One fresh sample of every row, z = mu + sigma e (arXiv 2110.09695, eq. 4), [n, D]. @param rows normals
[[nodiscard]] at::Tensor sampled(const embedding_rows& rows, const embedding_shape& shape, const rng_key& key);

/// All rows of all parts, one after the other, for training of a classifier: points as they are, normals as means and
/// deviations, so that every epoch draws anew.
/// @param points whether the parts are points, whatever the encoder makes
[[nodiscard]] sample_view training_set(std::span<const embedding_rows> parts, const embedding_shape& shape,
                                       bool points);

/// `count` of 0 .. n - 1 without repetition, drawn by `key`; all of them, over and over, before any comes once more.
[[nodiscard]] std::vector<std::int64_t> drawn_positions(std::int64_t n, std::int64_t count, const rng_key& key);

/// share * n, to the nearest whole number, but at least one of what there is unless the share is 0.
[[nodiscard]] std::int64_t share_of(double share, std::int64_t n);

} // namespace mneme
