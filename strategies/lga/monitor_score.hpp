/// monitor_score: how well a model still knows reconstructed images, tested on noisy copies of their features (Dong et
/// al. 2023, eqs. 11-13).
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

// Axes: m monitor images, D features, C classes seen, L classes that the images have.

struct feature_noise {
  /// Noise of feature i: N(0, v_i) times the scale, and its length at most 0.1 sum v (as printed); as released
  /// N(0, v_i^2) times it, and its squared length at most that.
  bool as_printed = true;
  double scale = 0.15; ///< omega
  std::int64_t copies = 5;
};

/// Noise for one row of a class whose features have `variances` [D] float64: redrawn until it keeps its bound, and
/// after 20 draws scaled onto it. All zeros where nothing varies.
[[nodiscard]] at::Tensor accepted_noise(const at::Tensor& variances, const feature_noise& how, rng_stream& stream);

/// Unbiased variances of the features of each class: [L, D] float64, zeros for a class with one row; classes ascend.
/// @param features [m, D] @param labels [m] int64
[[nodiscard]] at::Tensor variances_by_class(const at::Tensor& features, const at::Tensor& labels);

/// omega_t = (C_old omega_(t-1) + sum over new classes of Tr(cov_c) / d) / (C_old + C_new) (eq. 12).
/// @param scale omega_(t-1) @param old_classes C_old; 0: nothing was before
/// @param traces [C_new] float64, Tr(cov_c) / d
[[nodiscard]] double next_noise_scale(double scale, std::int64_t old_classes, const at::Tensor& traces);

/// The share of right answers of the head over noisy copies of the features; over the features themselves where `how`
/// has no copies. @param head [C, D] weights @param bias [C]
[[nodiscard]] double monitor_score(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& head,
                                   const at::Tensor& bias, const feature_noise& how, const rng_key& key);

} // namespace mneme
