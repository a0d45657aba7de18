/// guided_pictures: pictures of Stable Diffusion's kind, from the states of a text or of means of texts.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/diffusion/captioner.hpp"
namespace mneme {

// Axes: Z pictures of a job, K jobs, c channels, h height, w width of latents, C, H, W those of the run's images; E
// numbers of a condition.

struct diffusion_parts {
  loaded_module denoiser{}; ///< latents [c h w], time, condition [E] in a row -> noise [c h w]
  loaded_module decoder{};  ///< latents [c, h, w] -> pictures around -1 .. 1, [3 * 8 h * 8 w] or so, square
};

/// Latent diffusion (Rombach et al. 2022) as Stable Diffusion v1 samples by DDIM without noise: betas of 0.00085 to
/// 0.012 over 1,000 times, every (1000 / steps)-th of which is taken, one later each; noise under the condition is
/// guided away from that under none (Ho and Salimans 2022).
class picture_diffusion {
public:
  picture_diffusion(diffusion_parts parts, std::int64_t steps, double guidance);

  [[nodiscard]] std::array<std::int64_t, 3> latent_shape() const noexcept { return parts_.decoder.input; } ///< c, h, w
  [[nodiscard]] std::int64_t steps() const noexcept { return std::ssize(times_); }
  [[nodiscard]] const std::vector<std::int64_t>& times() const noexcept { return times_; }
  [[nodiscard]] std::string identity() const;

  /// Latents [n, c, h, w] one step on. @param told, nothing [n, E] a condition and the one of no text for each row
  [[nodiscard]] at::Tensor step(std::int64_t number, const at::Tensor& latents, const at::Tensor& told,
                                const at::Tensor& nothing) const;
  /// [n, 3, side, side] in [0, 1]
  [[nodiscard]] at::Tensor pictures(const at::Tensor& latents) const;

private:
  [[nodiscard]] at::Tensor noise_in(const at::Tensor& latents, std::int64_t time, const at::Tensor& told) const;

  diffusion_parts parts_;
  std::vector<std::int64_t> times_;
  double guidance_;
};

/// Images under one condition. Reads "condition" [E]; ends with "images" [Z, C, H, W] uint8, brought to the size of the
/// run's. A slice is a step of all jobs of a batch. @param image C, H, W; of one channel: brightness (ITU-R BT.601)
[[nodiscard]] program_ref guided_pictures(std::shared_ptr<const picture_diffusion> by,
                                          std::shared_ptr<const captioner> nothing, std::array<std::int64_t, 3> image,
                                          std::int64_t count);

} // namespace mneme
