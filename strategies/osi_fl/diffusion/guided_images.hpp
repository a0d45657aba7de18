/// guided_images: image generation by Stable Diffusion from text states, or from means of text states.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/diffusion/captioner.hpp"
namespace mneme {

// Axes: Z images of a job, K jobs, c channels, h height and w width of latents, E numbers of a condition. C, H, W are
// channels, height and width of the run's images.

/// Modules of a latent diffusion model.
struct diffusion_parts {
  loaded_module denoiser{}; ///< row: latents [c h w], time, condition [E] -> noise [c h w]
  loaded_module decoder{};  ///< latents [c, h, w] -> a square image [3 * side * side] in about [-1, 1]
};

/// Latent diffusion (Rombach et al. 2022) with deterministic DDIM sampling as in Stable Diffusion v1. Betas go from
/// 0.00085 to 0.012 over 1,000 times. The sampled times are 1 plus the multiples of 1000 / steps. Conditional noise is
/// guided away from unconditional noise (Ho and Salimans 2022).
class image_diffusion {
public:
  image_diffusion(diffusion_parts parts, std::int64_t steps, double guidance);

  [[nodiscard]] std::array<std::int64_t, 3> latent_shape() const noexcept { return parts_.decoder.input; } ///< c, h, w
  [[nodiscard]] std::int64_t steps() const noexcept { return std::ssize(times_); }
  [[nodiscard]] const std::vector<std::int64_t>& times() const noexcept { return times_; }
  [[nodiscard]] std::string identity() const;

  /// Returns latents [n, c, h, w] after DDIM step `number`.
  /// @param condition_rows [n, E] conditions @param nothing [n, E] condition of the empty text for each row
  [[nodiscard]] at::Tensor step(std::int64_t number, const at::Tensor& latents, const at::Tensor& condition_rows,
                                const at::Tensor& nothing) const;
  /// Decodes latents to images [n, 3, side, side] in [0, 1].
  [[nodiscard]] at::Tensor images(const at::Tensor& latents) const;

private:
  [[nodiscard]] at::Tensor noise_in(const at::Tensor& latents, std::int64_t time,
                                    const at::Tensor& condition_rows) const;

  diffusion_parts parts_;
  std::vector<std::int64_t> times_;
  double guidance_;
};

/// A program that generates images under one condition; a slice is one step of all jobs of a batch. Reads "condition"
/// [E]; returns "images" [Z, C, H, W] uint8, resized to `image`.
/// @param image C, H, W; one channel means luma (ITU-R BT.601)
[[nodiscard]] program_ref guided_images(std::shared_ptr<const image_diffusion> by,
                                        std::shared_ptr<const captioner> nothing, std::array<std::int64_t, 3> image,
                                        std::int64_t count);

} // namespace mneme
