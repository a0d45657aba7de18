#include "runtime/method/privacy.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
namespace mneme {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// log(exp(a) + exp(b)).
double log_sum(double a, double b) {
  const auto low = std::min(a, b), high = std::max(a, b);
  return low == -infinite ? high : high + std::log1p(std::exp(low - high));
}

/// log |binomial coefficient| of a real n.
double log_binomial(double n, double k) { return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1); }

/// Returns log(erfc(x)). Uses the asymptotic series if erfc(x) underflows.
double log_erfc(double x) {
  if (const auto value = std::erfc(x); value > 0.0)
    return std::log(value);
  const auto inverse = 1.0 / (x * x);
  const auto tail = inverse * (-0.5 + inverse * (0.625 + inverse * (-37.0 / 24.0 + inverse * 353.0 / 64.0)));
  return -0.5 * std::log(std::numbers::pi) - std::log(x) - x * x + tail;
}

/// log A_alpha of an integer order: sum over i of binom(alpha, i) (1-q)^(alpha-i) q^i exp((i^2 - i) / (2 sigma^2)).
double log_moment_integer(double q, double sigma, double order) {
  auto sum = -infinite;
  for (double i = 0.0; i <= order; ++i)
    sum = log_sum(sum, log_binomial(order, i) + i * std::log(q) + (order - i) * std::log1p(-q) +
                           (i * i - i) / (2.0 * sigma * sigma));
  return sum;
}

/// log A_alpha of any order, computed as series from the two integrals of section 3.3. Infinite if a series does not
/// converge.
double log_moment_real(double q, double sigma, double order) {
  constexpr int terms_max = 1000;
  const auto middle = sigma * sigma * std::log(1.0 / q - 1.0) + 0.5;
  const auto two_squares = 2.0 * sigma * sigma, root = std::numbers::sqrt2 * sigma;
  auto sum = -infinite, last_low = -infinite, last_high = -infinite;
  for (int term = 0; term < terms_max; ++term) {
    const double i = term, j = order - i, coefficient = log_binomial(order, i) - std::numbers::ln2;
    const auto low =
        coefficient + i * std::log(q) + j * std::log1p(-q) + (i * i - i) / two_squares + log_erfc((i - middle) / root);
    const auto high =
        coefficient + j * std::log(q) + i * std::log1p(-q) + (j * j - j) / two_squares + log_erfc((middle - j) / root);
    sum = log_sum(sum, log_sum(low, high));
    if (low < last_low && high < last_high && std::max(low, high) < sum - 30.0)
      return sum;
    last_low = low;
    last_high = high;
  }
  return infinite;
}

/// Epsilon at `delta` from the Renyi divergence at one order.
double epsilon_at(double order, double rdp, double delta) {
  if (delta * delta + std::expm1(-rdp) > 0.0) // then sqrt(1 - exp(-KL)), which bounds the total variation, is below
                                              // delta
    return 0.0;
  return rdp + std::log1p(-1.0 / order) - std::log(delta * order) / (order - 1.0);
}

/// Probability that a client takes part in a round.
double sampling_rate(const scenario& settings) {
  const bool all_in_reach =
      settings.enrolment.kind == enrolment_kind::all && settings.devices.availability == device_availability::always;
  if (!all_in_reach || settings.rounds.cohort == 0)
    return 1.0;
  return std::min(1.0, static_cast<double>(settings.rounds.cohort) / static_cast<double>(settings.clients.count));
}

} // namespace

double sampled_gaussian_rdp(double rate, double noise_multiplier, double order) {
  MNEME_CHECK(rate >= 0.0 && rate <= 1.0 && noise_multiplier > 0.0 && order > 1.0, rate, noise_multiplier, order);
  if (rate == 0.0)
    return 0.0;
  if (rate == 1.0)
    return order / (2.0 * noise_multiplier * noise_multiplier);
  const auto moment = order == std::floor(order) ? log_moment_integer(rate, noise_multiplier, order)
                                                 : log_moment_real(rate, noise_multiplier, order);
  return std::max(0.0, moment) / (order - 1.0);
}

const std::vector<double>& privacy_orders() {
  static const std::vector<double> orders = [] {
    std::vector<double> list;
    for (int tenth = 1; tenth < 100; ++tenth)
      list.push_back(1.0 + tenth / 10.0);
    for (int order = 11; order < 64; ++order)
      list.push_back(order);
    list.insert(list.end(), {128.0, 256.0, 512.0, 1024.0});
    return list;
  }();
  return orders;
}

double epsilon_of(const std::vector<double>& rdp, double delta) {
  const auto& orders = privacy_orders();
  MNEME_CHECK(rdp.size() == orders.size() && delta > 0.0 && delta < 1.0, rdp.size(), delta);
  auto best = infinite;
  for (std::size_t i = 0; i < orders.size(); ++i)
    best = std::min(best, epsilon_at(orders[i], rdp[i], delta));
  return std::max(0.0, best);
}

privacy_accountant::privacy_accountant(const scenario& settings) : delta_(settings.uploads.delta) {
  const auto& uploads = settings.uploads;
  if (uploads.noise_multiplier == 0.0 || uploads.noise == noise_place::tree)
    return;
  const bool central = uploads.noise == noise_place::server;
  const auto rate = central ? sampling_rate(settings) : 1.0;
  const auto multiplier = central ? uploads.noise_multiplier : uploads.noise_multiplier / 2.0;
  for (const auto order : privacy_orders())
    rdp_.push_back(sampled_gaussian_rdp(rate, multiplier, order));
}

std::optional<double> privacy_accountant::epsilon(std::int64_t rounds) const {
  if (rdp_.empty())
    return std::nullopt;
  auto composed = rdp_;
  for (auto& value : composed)
    value *= static_cast<double>(rounds);
  return epsilon_of(composed, delta_);
}

} // namespace mneme
