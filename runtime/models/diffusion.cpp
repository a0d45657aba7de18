#include "runtime/models/diffusion.hpp"
#include "runtime/base/check.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <algorithm>
#include <cmath>
#include <numbers>
namespace mneme {
namespace {

/// Schedule from betas: alpha bar is the running product of 1 - beta.
diffusion_schedule of_betas(const std::vector<double>& betas) {
  diffusion_schedule schedule;
  double left = 1.0;
  for (const double beta : betas) {
    MNEME_CHECK(0.0 < beta && beta < 1.0, beta);
    schedule.signal.push_back(left *= 1.0 - beta);
  }
  return schedule;
}

std::vector<double> evenly(std::int64_t steps, double first, double last) {
  MNEME_CHECK(steps >= 2, steps);
  std::vector<double> values;
  for (std::int64_t i = 0; i < steps; ++i)
    values.push_back(first + (last - first) * static_cast<double>(i) / static_cast<double>(steps - 1));
  return values;
}

/// Rounds to the nearest integer, ties to even, in any floating-point rounding mode.
std::int64_t rounded(double value) {
  const double whole = std::floor(value), rest = value - whole;
  const auto below = static_cast<std::int64_t>(whole);
  return rest > 0.5 || (rest == 0.5 && below % 2 != 0) ? below + 1 : below;
}

/// sqrt(alpha bar) and sqrt(1 - alpha bar) at the time of each row, as tensors [B, 1, ..] with the axes of `x`.
std::pair<at::Tensor, at::Tensor> factors(const diffusion_schedule& schedule, const at::Tensor& x,
                                          const std::vector<std::int64_t>& times) {
  MNEME_CHECK(x.size(0) == std::ssize(times), x.sizes(), times.size());
  std::vector<double> of_signal, of_noise;
  for (const auto time : times) {
    of_signal.push_back(std::sqrt(schedule.at(time)));
    of_noise.push_back(std::sqrt(1.0 - schedule.at(time)));
  }
  std::vector<std::int64_t> by_row(static_cast<std::size_t>(x.dim()), 1);
  by_row[0] = x.size(0);
  const auto factor = [&](const std::vector<double>& values) {
    return at::tensor(values, at::kDouble).to(x.options()).view(by_row);
  };
  return {factor(of_signal), factor(of_noise)};
}

} // namespace

double diffusion_schedule::at(std::int64_t time) const {
  MNEME_CHECK(time < steps(), time, steps());
  return time < 0 ? 1.0 : signal[static_cast<std::size_t>(time)];
}

diffusion_schedule linear_schedule(std::int64_t steps, double first, double last) {
  return of_betas(evenly(steps, first, last));
}

diffusion_schedule scaled_linear_schedule(std::int64_t steps, double first, double last) {
  auto betas = evenly(steps, std::sqrt(first), std::sqrt(last));
  for (auto& beta : betas)
    beta *= beta;
  return of_betas(betas);
}

diffusion_schedule cosine_schedule(std::int64_t steps, double offset, double beta_max) {
  const auto left = [&](std::int64_t time) {
    const double share = static_cast<double>(time) / static_cast<double>(steps);
    const double root = std::cos((share + offset) / (1.0 + offset) * std::numbers::pi / 2.0);
    return root * root;
  };
  std::vector<double> betas;
  for (std::int64_t time = 0; time < steps; ++time)
    betas.push_back(std::min(1.0 - left(time + 1) / left(time), beta_max));
  return of_betas(betas);
}

at::Tensor add_noise(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                     const std::vector<std::int64_t>& times) {
  MNEME_CHECK(x.sizes() == noise.sizes(), x.sizes(), noise.sizes());
  const auto [of_signal, of_noise] = factors(schedule, x, times);
  return of_signal * x + of_noise * noise;
}

at::Tensor velocities(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                      const std::vector<std::int64_t>& times) {
  MNEME_CHECK(x.sizes() == noise.sizes(), x.sizes(), noise.sizes());
  const auto [of_signal, of_noise] = factors(schedule, x, times);
  return of_signal * noise - of_noise * x;
}

at::Tensor velocity(const at::Tensor& x, const at::Tensor& noise, double signal) {
  return std::sqrt(signal) * noise - std::sqrt(1.0 - signal) * x;
}

at::Tensor noise_of_velocity(const at::Tensor& v, const at::Tensor& x_t, double signal) {
  return std::sqrt(signal) * v + std::sqrt(1.0 - signal) * x_t;
}

at::Tensor remove_noise(const at::Tensor& x_t, const at::Tensor& noise, double signal) {
  return (x_t - std::sqrt(1.0 - signal) * noise) / std::sqrt(signal);
}

at::Tensor apply_guidance(const at::Tensor& unconditional, const at::Tensor& conditional, double scale) {
  return unconditional + scale * (conditional - unconditional);
}

std::vector<std::int64_t> sampling_times(std::int64_t steps, std::int64_t count) {
  MNEME_CHECK(2 <= count && count <= steps, count, steps);
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < count; ++i)
    times.push_back(rounded(static_cast<double>((steps - 1) * (count - 1 - i)) / static_cast<double>(count - 1)));
  return times;
}

at::Tensor ddim(const ddim_step& step, const at::Tensor& x_t, const at::Tensor& noise, const at::Tensor& fresh) {
  auto x_0 = remove_noise(x_t, noise, step.signal);
  auto direction = noise;
  if (step.bound > 0.0) {
    x_0 = x_0.clamp(-step.bound, step.bound);
    direction = (x_t - std::sqrt(step.signal) * x_0) / std::sqrt(1.0 - step.signal);
  }
  const double deviation = step.eta * std::sqrt((1.0 - step.signal_before) / (1.0 - step.signal)) *
                           std::sqrt(1.0 - step.signal / step.signal_before);
  const auto moved =
      std::sqrt(step.signal_before) * x_0 + std::sqrt(1.0 - step.signal_before - deviation * deviation) * direction;
  return step.eta > 0.0 ? moved + deviation * fresh : moved;
}

} // namespace mneme
