// Values of schedules: betas and their products with the formulas of the papers, in plain Python,
//   def products(betas): left = 1.0; return [left := left * (1 - b) for b in betas]
//   linear: b[i] = a + (z - a) * i / (T - 1); scaled: squares of that between roots;
//   cosine: f(t) = cos((t / T + 0.008) / 1.008 * pi / 2) ** 2, b[t] = min(1 - f(t + 1) / f(t), 0.999)
#include "runtime/models/diffusion.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/tensors.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

/// Noise between x_0 and x_t, as a perfect net would predict it.
at::Tensor oracle(const at::Tensor& x_0, const at::Tensor& x_t, double signal) {
  return (x_t - std::sqrt(signal) * x_0) / std::sqrt(1.0 - signal);
}

} // namespace

TEST_CASE("schedules have the products of the papers' betas", "[models]") {
  const auto linear = linear_schedule(1000, 1e-4, 0.02);
  REQUIRE(linear.steps() == 1000);
  CHECK_THAT(linear.at(0), WithinRel(0.9999, 1e-12));
  CHECK_THAT(linear.at(499), WithinRel(0.07858724288177821, 1e-12));
  CHECK_THAT(linear.at(999), WithinRel(4.0358297653756754e-05, 1e-12));
  CHECK(linear.at(-1) == 1.0);

  const auto scaled = scaled_linear_schedule(1000, 0.00085, 0.012);
  CHECK_THAT(scaled.at(499), WithinRel(0.27766965045646763, 1e-12));
  CHECK_THAT(scaled.at(999), WithinRel(0.004660098513077234, 1e-12));

  const auto cosine = cosine_schedule(400);
  CHECK_THAT(cosine.at(0), WithinRel(0.9998876852830568, 1e-12));
  CHECK_THAT(cosine.at(199), WithinRel(0.49384359044063697, 1e-12));
  CHECK_THAT(cosine.at(398), WithinRel(1.5179728659726302e-05, 1e-9));
  CHECK_THAT(cosine.at(399), WithinRel(1.5179728659726315e-08, 1e-9)); // the last beta is clamped to 0.999
}

TEST_CASE("noised rows of unit variance keep it at every time", "[models]") {
  const auto schedule = cosine_schedule(400);
  const std::vector<std::int64_t> times{0, 100, 399};
  const auto x = drawn({3, 200'000}, 1), noise = drawn({3, 200'000}, 2);
  const auto seen = add_noise(schedule, x, noise, times);
  for (std::int64_t row = 0; row < 3; ++row) {
    CHECK_THAT(seen[row].var().item<double>(), WithinAbs(1.0, 0.02));
    const auto signal = schedule.at(times[static_cast<std::size_t>(row)]);
    CHECK(largest_difference(remove_noise(seen[row], noise[row], schedule.at(100)).contiguous(), x[row].contiguous()) <
          (row == 1 ? 1e-5 : 1e30));
    CHECK_THAT((seen[row] * x[row]).mean().item<double>(), WithinAbs(std::sqrt(signal), 0.01));
  }
}

TEST_CASE("velocities contain the noise, and guidance is the same for both", "[models]") {
  const double signal = 0.3;
  const auto x = drawn({5, 7}, 1), noise = drawn({5, 7}, 2), other = drawn({5, 7}, 3);
  const auto x_t = std::sqrt(signal) * x + std::sqrt(1.0 - signal) * noise;
  const auto v = velocity(x, noise, signal);
  CHECK(largest_difference(noise_of_velocity(v, x_t, signal), noise) < 1e-6);
  CHECK(same_bits(apply_guidance(other, v, 1.0), other + (v - other)));
  CHECK(same_bits(apply_guidance(other, v, 0.0), other + 0.0 * (v - other)));
  const auto by_velocity = noise_of_velocity(apply_guidance(other, v, 2.5), x_t, signal);
  const auto by_noise = apply_guidance(noise_of_velocity(other, x_t, signal), noise_of_velocity(v, x_t, signal), 2.5);
  CHECK(largest_difference(by_velocity, by_noise) < 1e-5);
}

TEST_CASE("velocities of rows at different times equal those of each row alone", "[models]") {
  const auto schedule = cosine_schedule(400);
  const std::vector<std::int64_t> times{0, 250, 399};
  const auto x = drawn({3, 7}, 1), noise = drawn({3, 7}, 2);
  const auto v = velocities(schedule, x, noise, times);
  for (std::int64_t row = 0; row < 3; ++row) {
    const auto signal = schedule.at(times[static_cast<std::size_t>(row)]);
    CHECK(largest_difference(v[row].contiguous(), velocity(x[row], noise[row], signal)) < 1e-6);
  }
}

TEST_CASE("sampling times are evenly spaced from last to first, and halves round to even", "[models]") {
  const auto times = sampling_times(400, 25);
  REQUIRE(times.size() == 25);
  CHECK(times.front() == 399);
  CHECK(times.back() == 0);
  CHECK(times[4] == 332); // 332.5
  CHECK(times[12] == 200);
  CHECK(times[20] == 66); // 66.5
  CHECK(sampling_times(4, 4) == std::vector<std::int64_t>{3, 2, 1, 0});
}

TEST_CASE("sampling with a perfect net returns the noised rows for any number of steps", "[models]") {
  const auto schedule = cosine_schedule(400);
  const auto x = drawn({6, 5}, 1).to(at::kDouble).clamp(-2.0, 2.0), noise = drawn({6, 5}, 2).to(at::kDouble);
  for (const std::int64_t count : {2, 7, 25, 400})
    for (const double bound : {0.0, 4.0}) {
      const auto times = sampling_times(400, count);
      const double first = schedule.at(times[0]);
      auto x_t = std::sqrt(first) * x + std::sqrt(1.0 - first) * noise;
      for (std::size_t i = 0; i < times.size(); ++i) {
        const double signal = schedule.at(times[i]), before = schedule.at(i + 1 < times.size() ? times[i + 1] : -1);
        x_t = ddim({.signal = signal, .signal_before = before, .bound = bound}, x_t, oracle(x, x_t, signal));
      }
      INFO(count << " steps, bound " << bound);
      CHECK((x_t - x).abs().max().item<double>() < 1e-6);
    }
}

TEST_CASE("a step with eta = 1 is a step of DDPM", "[models]") {
  // Adjacent times: the mean of Ho et al. 2020, eq. 11, and the variance of their eq. 7.
  const auto schedule = linear_schedule(1000, 1e-4, 0.02);
  const std::int64_t time = 300;
  const double signal = schedule.at(time), before = schedule.at(time - 1), beta = 1.0 - signal / before;
  const auto x_t = drawn({4, 3}, 1).to(at::kDouble), noise = drawn({4, 3}, 2).to(at::kDouble),
             fresh = drawn({4, 3}, 3).to(at::kDouble);
  const auto mean = (x_t - beta / std::sqrt(1.0 - signal) * noise) / std::sqrt(1.0 - beta);
  const double deviation = std::sqrt((1.0 - before) / (1.0 - signal) * beta);
  const auto moved = ddim({.signal = signal, .signal_before = before, .eta = 1.0}, x_t, noise, fresh);
  CHECK((moved - (mean + deviation * fresh)).abs().max().item<double>() < 1e-12);
}
