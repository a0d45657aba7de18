#include "runtime/method/update_steps.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
namespace mneme {

double l2_norm(std::span<const double> update) {
  double sum = 0.0;
  for (const auto value : update)
    sum += value * value;
  return std::sqrt(sum);
}

void clip_update(std::span<double> update, double bound) {
  MNEME_CHECK(bound > 0.0, bound);
  const auto norm = l2_norm(update);
  if (norm <= bound)
    return;
  const auto factor = bound / norm;
  for (auto& value : update)
    value *= factor;
}

void add_gaussian(std::span<double> update, double factor, const rng_key& key) {
  rng_stream draw(key);
  for (auto& value : update)
    value += factor * draw.normal();
}

std::int64_t kept_entries(double share, std::int64_t n) {
  if (n == 0 || share >= 1.0)
    return n;
  const auto wanted = std::ceil(share * static_cast<double>(n) * (1.0 - 1e-12)); // else 0.1 * 30 would exceed 3
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, n);
}

void keep_largest(std::span<double> update, std::int64_t count) {
  if (count >= std::ssize(update))
    return;
  std::vector<std::size_t> order(update.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto magnitude = [&](std::size_t i) { // NaN counts as the largest value, so that a diverged update remains
                                              // visible
    return std::isnan(update[i]) ? INFINITY : std::abs(update[i]);
  };
  const auto comes_first = [&](std::size_t a, std::size_t b) {
    return magnitude(a) != magnitude(b) ? magnitude(a) > magnitude(b) : a < b;
  };
  std::nth_element(order.begin(), order.begin() + count, order.end(), comes_first);
  for (auto at = order.begin() + count; at != order.end(); ++at)
    update[*at] = 0.0;
}

void quantise_update(std::span<double> update, std::int64_t bits, rounding_kind rounding, const rng_key& key) {
  MNEME_CHECK(bits >= 2 && bits <= 32, bits);
  double largest = 0.0;
  for (const auto value : update)
    largest = std::max(largest, std::abs(value)); // skips NaN, which stays NaN below
  const auto levels = static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
  const double step = static_cast<float>(largest / levels);
  if (step == 0.0)
    return std::fill(update.begin(), update.end(), 0.0);
  rng_stream draw(key);
  for (auto& value : update)
    if (value != 0.0) {
      const auto scaled = value / step;
      const auto whole =
          rounding == rounding_kind::nearest ? std::nearbyint(scaled) : std::floor(scaled + draw.uniform());
      value = std::clamp(whole, -levels, levels) * step;
    }
}

} // namespace mneme
