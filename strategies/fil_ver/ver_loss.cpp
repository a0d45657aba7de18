#include "strategies/fil_ver/ver_loss.hpp"
#include "runtime/base/check.hpp"
#include "strategies/shared/row_losses.hpp"
#include <ATen/TensorOperators.h>
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
namespace mneme {

// Axes: D numbers of an embedding; features hold 2 D.

double kl_to_standard(const float* features, std::int64_t width, double low, double high) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < width; ++d) {
    const double mean = features[d], log = std::clamp<double>(features[width + d], low, high);
    sum += mean * mean + std::expm1(2.0 * log) - 2.0 * log;
  }
  return 0.5 * sum;
}

loss_ref ver_loss(double beta, double low, double high) {
  MNEME_CHECK(beta >= 0.0 && low <= high, beta, low, high);
  return differentiable_objective(
      {.identity = fmt::format("cross-entropy + {} KL within {} and {}", beta, low, high), // prints all digits
       .terms = {"cross_entropy", "kl"},
       .reads_label_smoothing = true,
       .reads_features = true},
      [=](const loss_rows& in) -> std::vector<at::Tensor> {
        const auto features = in.features.to(at::kDouble);
        const auto width = features.size(1) / 2;
        const auto mean = features.narrow(1, 0, width), log = features.narrow(1, width, width).clamp(low, high);
        const auto kl = 0.5 * (mean.square() + (2.0 * log).expm1() - 2.0 * log).sum(1);
        return {cross_entropy_rows(in.logits, in.labels, in.label_smoothing), weighted_sum(kl, in.weight) * beta};
      });
}

} // namespace mneme
