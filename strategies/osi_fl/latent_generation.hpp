/// latent_generation: generates images from conditions with a small latent diffusion model, and computes the
/// clients' conditions.
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/diffusion.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: K conditions in a stack, Z latents per condition or images of a job, E numbers of an embedding, L numbers of a
// latent, n rows, C channels, H height, W width of an image.

/// Options of sampling.
struct generation_settings {
  std::int64_t images = 50;    ///< Z
  std::int64_t candidates = 2; ///< Number of images that are generated for each selected one.
  std::int64_t steps = 25;     ///< Number of DDIM steps, out of diffusion_times.
  double guidance = 1.0;       ///< w of unconditional + w (conditional - unconditional); 1: conditional only.
};

/// Deterministic DDIM sampling (Song et al. 2021), with x_0 clamped to [-6, 6].
class latent_sampler {
public:
  latent_sampler(const latent_shape& shape, const generation_settings& settings);
  /// Samples x_0 from noise [K, Z, L] under conditions [K, 1, E]: [K, Z, L]. The bits of the K results do not depend on
  /// each other. @param net [P] weights of the denoiser
  [[nodiscard]] at::Tensor latents(const at::Tensor& net, const at::Tensor& conditions, at::Tensor noise) const;

private:
  generation_settings settings_;
  latent_denoiser denoiser_;
  diffusion_schedule schedule_;
};

/// Maps latents so that their mean and covariance become those of other latents: x to (x - from) turn + to, with turn =
/// C^(-1/2) D^(1/2) for covariances C and D. This is whitening and coloring (Li et al. 2017, "Universal style transfer
/// via feature transforms", section 3.2; there for image features).
///
/// The target moments are a weighted mean of the moments of the n rows, with weight n, and those of the generated
/// latents, with weight L. So a kind with few rows is hardly changed.
struct moment_map {
  at::Tensor turn{};       ///< [L, L] float32
  at::Tensor from{}, to{}; ///< [L] float32
  /// @param generated [Z, L] @param rows [n, L]; without rows the map is the identity
  moment_map(const at::Tensor& generated, const at::Tensor& rows);
  moment_map(at::Tensor turning, at::Tensor leaving, at::Tensor reaching)
      : turn(std::move(turning)), from(std::move(leaving)), to(std::move(reaching)) {}
  /// Maps latents [m, L]: [m, L].
  [[nodiscard]] at::Tensor moved(const at::Tensor& latents) const;
};
/// Names of the tensors of moment_map, stacked over all kinds: [kinds, L, L], [kinds, L] and [kinds, L].
inline constexpr std::array moment_tensors{"turns", "made_means", "row_means"};

/// A program that computes the moment_map of each kind, one kind per slice. It samples a thousand latents under the
/// mean embedding of the kind's rows. Reads "denoiser", "embeddings" [n, E], "latents" [n, L] and "kinds" [n] int64;
/// returns the tensors of moment_map for all kinds.
[[nodiscard]] program_ref moment_matching(const latent_shape& shape, const generation_settings& settings);

/// A program that generates images under one condition by deterministic DDIM (Song et al. 2021), with x_0 clamped to
/// [-6, 6]. With several candidates per image, it selects images that the encoder assigns to the condition's kind (the
/// CLIP filter of He et al. 2023, "Is synthetic data from generative models ready for image recognition?"). With the
/// tensors of moment_matching, latents are first mapped to the moments of that kind. Reads "denoiser", the tensors of
/// image_components and "condition" [E]. With candidates or moments, it also reads "encoder". Returns "images" [Z, C,
/// H, W] uint8. Jobs with identical nets run as one stack.
[[nodiscard]] program_ref latent_generation(const latent_shape& shape, const generation_settings& settings);

/// A program that computes class means of a client's embeddings. Reads "encoder"; returns "means" [classes, E], zeros
/// for a class without rows, and "counts" [classes] int64.
[[nodiscard]] program_ref class_means(const latent_shape& shape, std::int64_t classes);

} // namespace mneme
