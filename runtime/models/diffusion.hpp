/// diffusion: noise schedules of diffusion models, and the sampling steps that remove the noise.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>
namespace mneme {

// Axes: B rows. Times count from 0, the least noisy, to T - 1.

/// Noise schedule: the share of the signal's variance that remains at each time.
struct diffusion_schedule {
  std::vector<double> signal{}; ///< [T] alpha bar of Ho et al. 2020, "Denoising Diffusion Probabilistic Models", eq. 4.
  [[nodiscard]] std::int64_t steps() const noexcept { return std::ssize(signal); }
  /// alpha bar at `time`; 1 for negative times. @pre time < steps()
  [[nodiscard]] double at(std::int64_t time) const;
};

/// Betas increase linearly from `first` to `last` (Ho et al. 2020, section 4: 1,000 steps from 1e-4 to 0.02).
[[nodiscard]] diffusion_schedule linear_schedule(std::int64_t steps, double first, double last);
/// Square roots of betas increase linearly from sqrt(first) to sqrt(last) (Rombach et al. 2022, latent diffusion: 1,000
/// steps from 0.00085 to 0.012).
[[nodiscard]] diffusion_schedule scaled_linear_schedule(std::int64_t steps, double first, double last);
/// alpha bar is proportional to cos^2((t / T + offset) / (1 + offset) pi / 2), with betas of at most `beta_max` (Nichol
/// and Dhariwal 2021, "Improved Denoising Diffusion Probabilistic Models", eq. 17).
[[nodiscard]] diffusion_schedule cosine_schedule(std::int64_t steps, double offset = 0.008, double beta_max = 0.999);

/// x_t = sqrt(alpha bar) x_0 + sqrt(1 - alpha bar) noise for each row (Ho et al. 2020, eq. 4).
/// @param x, noise [B, ..] @param times [B], one per row
[[nodiscard]] at::Tensor add_noise(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                                   const std::vector<std::int64_t>& times);

/// v = sqrt(alpha bar) noise - sqrt(1 - alpha bar) x_0, which some nets predict instead of the noise (Salimans and Ho
/// 2022, "Progressive Distillation", section 4). @param signal alpha bar
[[nodiscard]] at::Tensor velocity(const at::Tensor& x, const at::Tensor& noise, double signal);
/// velocity() with one time per row. @param times [B]
[[nodiscard]] at::Tensor velocities(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                                    const std::vector<std::int64_t>& times);
/// The noise that corresponds to the velocity `v` at x_t: sqrt(alpha bar) v + sqrt(1 - alpha bar) x_t.
[[nodiscard]] at::Tensor noise_of_velocity(const at::Tensor& v, const at::Tensor& x_t, double signal);
/// Prediction of x_0 from x_t and its noise (Song et al. 2021, "Denoising Diffusion Implicit Models", eq. 9).
[[nodiscard]] at::Tensor remove_noise(const at::Tensor& x_t, const at::Tensor& noise, double signal);

/// Classifier-free guidance: unconditional + scale (conditional - unconditional) (Ho and Salimans 2022, eq. 6, whose w
/// is scale - 1). Scale 1 is the conditional prediction.
[[nodiscard]] at::Tensor apply_guidance(const at::Tensor& unconditional, const at::Tensor& conditional, double scale);

/// `count` evenly spaced times from steps - 1 down to 0, rounded with ties to even, as in NumPy and PyTorch.
/// @pre 2 <= count <= steps
[[nodiscard]] std::vector<std::int64_t> sampling_times(std::int64_t steps, std::int64_t count);

/// Settings of one sampling step from a time to an earlier time.
struct ddim_step {
  double signal = 1.0, signal_before = 1.0; ///< alpha bar at the time, and at the earlier time.
  double eta = 0.0;                         ///< 0: no noise (DDIM); 1: the noise of DDPM.
  double bound = 0.0;                       ///< x_0 is clamped to [-bound, bound]; 0: no clamping.
};
/// Returns x at the earlier time (Song et al. 2021, eq. 12 and 16). With a bound, the noise is recomputed from x_t and
/// the clamped x_0. @param fresh standard normal noise with the shape of x_t; read if eta > 0
[[nodiscard]] at::Tensor ddim(const ddim_step& step, const at::Tensor& x_t, const at::Tensor& noise,
                              const at::Tensor& fresh = {});

} // namespace mneme
