/// Diffusion: schedules of noise, and the steps that take it away again.
#pragma once
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <vector>
namespace mneme {

// Axes: B rows. Times count from 0, the least noisy, to T - 1.

/// How much of a signal is left at each time.
struct diffusion_schedule {
  std::vector<double> signal{}; ///< [T] alpha bar of Ho et al. 2020, "Denoising Diffusion Probabilistic Models", eq. 4.
  [[nodiscard]] std::int64_t steps() const noexcept { return std::ssize(signal); }
  /// alpha bar at a time; 1 before the first.
  [[nodiscard]] double at(std::int64_t time) const;
};

/// Betas evenly from `first` to `last` (Ho et al. 2020, section 4: 1,000 steps from 1e-4 to 0.02).
[[nodiscard]] diffusion_schedule linear_schedule(std::int64_t steps, double first, double last);
/// Square roots of betas evenly between those of `first` and `last` (Rombach et al. 2022, latent diffusion: 1,000 steps
/// from 0.00085 to 0.012).
[[nodiscard]] diffusion_schedule scaled_linear_schedule(std::int64_t steps, double first, double last);
/// alpha bar follows cos^2((t / T + offset) / (1 + offset) pi / 2), betas at most `beta_max` (Nichol and Dhariwal 2021,
/// "Improved Denoising Diffusion Probabilistic Models", eq. 17).
[[nodiscard]] diffusion_schedule cosine_schedule(std::int64_t steps, double offset = 0.008, double beta_max = 0.999);

/// x_t = sqrt(alpha bar) x_0 + sqrt(1 - alpha bar) noise, row by row (Ho et al. 2020, eq. 4).
/// @param times [B] one per row of `x` and `noise` [B, ..]
[[nodiscard]] at::Tensor noised(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                                const std::vector<std::int64_t>& times);

/// What nets predict instead of the noise: v = sqrt(alpha bar) noise - sqrt(1 - alpha bar) x_0 (Salimans and Ho 2022,
/// "Progressive Distillation", section 4), and the noise that follows from it at x_t.
[[nodiscard]] at::Tensor velocity(const at::Tensor& x, const at::Tensor& noise, double signal);
/// The same at a time for each row. @param times [B]
[[nodiscard]] at::Tensor velocities(const diffusion_schedule& schedule, const at::Tensor& x, const at::Tensor& noise,
                                    const std::vector<std::int64_t>& times);
[[nodiscard]] at::Tensor noise_of_velocity(const at::Tensor& v, const at::Tensor& x_t, double signal);
/// x_0 as the noise in x_t tells it (Song et al. 2021, "Denoising Diffusion Implicit Models", eq. 9).
[[nodiscard]] at::Tensor denoised(const at::Tensor& x_t, const at::Tensor& noise, double signal);

/// unconditional + scale (conditional - unconditional): guidance without a classifier (Ho and Salimans 2022, eq. 6,
/// whose w is scale - 1). 1: the conditional alone.
[[nodiscard]] at::Tensor guided(const at::Tensor& unconditional, const at::Tensor& conditional, double scale);

/// `count` times from T - 1 down to 0, evenly, halves to the even number, as NumPy and PyTorch round.
/// @pre 2 <= count <= steps
[[nodiscard]] std::vector<std::int64_t> sampling_times(std::int64_t steps, std::int64_t count);

/// One step of sampling from a time to an earlier one.
struct ddim_step {
  double signal = 1.0, signal_before = 1.0; ///< alpha bar at the time, and at the earlier one.
  double eta = 0.0;                         ///< 0: no noise (DDIM); 1: as much as DDPM adds.
  double bound = 0.0;                       ///< x_0 is kept within -bound .. bound; 0: it is not.
};
/// x at the earlier time (Song et al. 2021, eq. 12 and 16). With a bound, the noise is the one that leads from x_t to
/// the bounded x_0. @param fresh noise of its own, read where eta > 0
[[nodiscard]] at::Tensor ddim(const ddim_step& step, const at::Tensor& x_t, const at::Tensor& noise,
                              const at::Tensor& fresh = {});

} // namespace mneme
