/// latent_generation: images that a small latent diffusion model makes under conditions, and the conditions of clients.
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/diffusion.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: K conditions in a stack, Z latents of each or images of a job, E numbers of an embedding, L of a latent; n
// rows; C channels, H height, W width of an image.

struct generation_settings {
  std::int64_t images = 50;    ///< Z
  std::int64_t candidates = 2; ///< Images made for each that is kept.
  std::int64_t steps = 25;     ///< DDIM's, of diffusion_times.
  double guidance = 1.0;       ///< w of unconditional + w (conditional - unconditional): 1 is the conditional alone.
};

/// DDIM without noise (Song et al. 2021), x_0 kept within +-6.
class latent_sampler {
public:
  latent_sampler(const latent_shape& shape, const generation_settings& with);
  /// x_0 of noise [K, Z, L] under conditions [K, 1, E]; those of each of K do not depend on the others.
  /// @param net [P] of the denoiser
  [[nodiscard]] at::Tensor latents(const at::Tensor& net, const at::Tensor& conditions, at::Tensor noise) const;

private:
  generation_settings with_;
  latent_denoiser denoiser_;
  diffusion_schedule schedule_;
};

/// The map of latents that brings the mean and the covariance of some to those of others: x to (x - from) turn + to,
/// turn = C^(-1/2) D^(1/2) for covariances C and D (the whitening and colouring of Li et al. 2017, "Universal style
/// transfer via feature transforms", section 3.2, there on features of a picture).
///
/// What rows say is blended with what was made: they count as n rows, and that nothing need change as L, so that a kind
/// of few rows is hardly touched.
struct moment_map {
  at::Tensor turn{};       ///< [L, L] float32
  at::Tensor from{}, to{}; ///< [L] float32
  /// @param generated [Z, L] @param rows [n, L]; without rows nothing changes
  moment_map(const at::Tensor& generated, const at::Tensor& rows);
  moment_map(at::Tensor turning, at::Tensor leaving, at::Tensor reaching)
      : turn(std::move(turning)), from(std::move(leaving)), to(std::move(reaching)) {}
  /// [m, L]
  [[nodiscard]] at::Tensor moved(const at::Tensor& latents) const;
};
/// The names of these tensors, of all kinds: [kinds, L, L] and [kinds, L].
inline constexpr std::array moment_tensors{"turns", "made_means", "row_means"};

/// How latents that are made of each kind differ, in mean and covariance, from those of its rows: a thousand are made
/// under the mean of its rows' embeddings. Reads "denoiser", "embeddings" [n, E], "latents" [n, L], "kinds" [n] int64;
/// ends with the tensors of moment_map, for all kinds. Slices are kinds.
[[nodiscard]] program_ref moment_matching(const latent_shape& shape, const generation_settings& with);

/// Images under one condition by DDIM without noise (Song et al. 2021), x_0 kept within +-6. With several
/// candidates for each image those are kept that the encoder takes for the kind that the condition stands for (He et
/// al. 2023, "Is synthetic data from generative models ready for image recognition?", their CLIP filter). Where
/// there are the tensors of moment_matching, latents are brought to the moments of the condition's kind first. Reads
/// "denoiser", the tensors of image_components, "condition" [E] and, where there are candidates or moments, "encoder";
/// ends with "images" [Z, C, H, W] uint8. Jobs whose nets are the same tensors are computed as one stack.
[[nodiscard]] program_ref latent_generation(const latent_shape& shape, const generation_settings& with);

/// Sums up what the encoder says of a client's rows. Reads "encoder"; ends with "means" [classes, E] (zeros where there
/// are no rows) and "counts" [classes] int64.
[[nodiscard]] program_ref class_means(const latent_shape& shape, std::int64_t classes);

} // namespace mneme
