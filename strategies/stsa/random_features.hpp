/// random_features: random projection of a frozen net's features, drawn by key.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

/// Draws W_R [features, width], float64 with float32 values: entries from N(0, 1), not scaled (STSA, section 3.2;
/// RanPAC, McDonnell et al. 2023, eq. 7). Columns are drawn one after another, so a smaller width is a prefix of a
/// larger one.
[[nodiscard]] at::Tensor random_projection(const rng_key& key, std::int64_t features, std::int64_t width);

} // namespace mneme
