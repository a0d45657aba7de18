/// random_features: the keyed random projection of a frozen net's features.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

/// W_R [features, width] float64 with float32 values: entries N(0, 1), not scaled, drawn feature after feature, so that
/// a smaller width is a prefix of a larger one (STSA, section 3.2; RanPAC, McDonnell et al. 2023, eq. 7).
[[nodiscard]] at::Tensor random_projection(const rng_key& key, std::int64_t features, std::int64_t width);

} // namespace mneme
