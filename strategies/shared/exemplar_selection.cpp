#include "strategies/shared/exemplar_selection.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ATen.h>
#include <algorithm>
namespace mneme {
namespace {

std::vector<std::int64_t> nearest(const at::Tensor& rows, const at::Tensor& mean, std::int64_t count) {
  const auto distances = (rows - mean).square().sum(1);
  const auto order = std::get<1>(distances.sort(/*stable=*/true, 0, false)).contiguous();
  const auto* const first = order.const_data_ptr<std::int64_t>();
  return {first, first + count};
}

/// The next row is the one with which the mean of the chosen, (sum + f) / (k + 1), is nearest to the class mean. With
/// v = (k + 1) mean - sum the distance is |v - f|, so one product with v ranks all rows.
std::vector<std::int64_t> herded(const at::Tensor& rows, const at::Tensor& mean, std::int64_t count, bool again) {
  std::vector<std::int64_t> chosen;
  const auto lengths = rows.square().sum(1); // [n]
  auto sum = at::zeros_like(mean);
  auto taken = at::zeros({rows.size(0)}, at::kBool);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto target = mean * static_cast<double>(k + 1) - sum;
    auto distances = lengths - 2.0 * at::mv(rows, target);
    if (!again)
      distances.masked_fill_(taken, std::numeric_limits<double>::infinity());
    const auto next = distances.argmin().item<std::int64_t>();
    taken[next].fill_(true);
    sum += rows[next];
    chosen.push_back(next);
  }
  return chosen;
}

} // namespace

std::vector<std::int64_t> chosen_exemplars(const at::Tensor& features, std::int64_t count, exemplar_choice how,
                                           bool as_they_are) {
  MNEME_CHECK(features.size(0) > 0, features.size(0));
  const auto raw = features.cpu().to(at::kDouble);
  const auto rows = as_they_are ? raw : raw / raw.norm(2, {1}, true).clamp_min(1e-12);
  const auto mean = rows.mean(0);
  const bool again = how == exemplar_choice::duplicates;
  const auto chosen_count = again ? count : std::min(count, rows.size(0));
  return how == exemplar_choice::rank ? nearest(rows, mean, chosen_count) : herded(rows, mean, chosen_count, again);
}

} // namespace mneme
