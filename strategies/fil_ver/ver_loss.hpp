/// ver_loss: what a variational encoder and its classifier are trained by.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

/// KL(N(mu, sigma^2 I) || N(0, I)) = 1/2 sum_d (mu_d^2 + sigma_d^2 - 1 - 2 log sigma_d) of one row, in nats.
/// @param features mu, then log sigma, `width` numbers each; log sigma is taken within the bounds
[[nodiscard]] double kl_to_standard(const float* features, std::int64_t width, double low, double high);

/// E_z[CE(f(z), y)] + beta KL, mean over rows, KL summed over the embedding (arXiv 2110.09695, eq. 9, with its sign).
/// For nets whose features are mu and log sigma side by side. Beyond the bounds log sigma has no gradient.
/// @param beta >= 0
[[nodiscard]] loss_ref ver_loss(double beta, double low, double high);

} // namespace mneme
