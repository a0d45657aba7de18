/// ver_loss: loss of a variational encoder with its classifier.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

/// KL(N(mu, sigma^2 I) || N(0, I)) = 1/2 sum_d (mu_d^2 + sigma_d^2 - 1 - 2 log sigma_d) of one row, in nats.
/// @param features `width` numbers mu, then `width` numbers log sigma, which are clamped to [low, high]
[[nodiscard]] double kl_to_standard(const float* features, std::int64_t width, double low, double high);

/// E_z[CE(f(z), y)] + beta KL, averaged over rows, with KL summed over the embedding (arXiv 2110.09695, eq. 9, with the
/// same sign). The net's features must be mu and log sigma, concatenated. A clamped log sigma has no gradient. @param
/// beta >= 0
[[nodiscard]] loss_ref ver_loss(double beta, double low, double high);

} // namespace mneme
