/// latent_programs: how a small latent diffusion model is trained, and what it is used for.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/shared/latent_nets.hpp"
namespace mneme {

// Axes: n public rows, C channels, H height, W width; E numbers of an embedding, L of a latent, P parameters of a net;
// Z images of a job.

/// Steps of diffusion, whose noise follows the cosine schedule (Nichol and Dhariwal 2021).
inline constexpr std::int64_t diffusion_times = 400;

/// The encoder learns to tell kinds apart. Reads "kinds" [n] int64; ends with "weights" [P].
[[nodiscard]] program_ref encoder_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);
/// The principal components of the rows' pixels, by `passes` passes over them. Ends with the tensors of
/// image_components.
[[nodiscard]] program_ref component_analysis(const latent_shape& shape, std::int64_t passes);
/// What both make of the rows. Reads "encoder" (or "embeddings" [n, E], which it hands on) and the tensors of
/// image_components; ends with "embeddings" [n, E] and "latents" [n, L].
[[nodiscard]] program_ref latent_encoding(const latent_shape& shape);
/// The denoiser learns velocities under conditions, of which a tenth is left out (Ho and Salimans 2022), and three in
/// four are means of 1 to 50 embeddings of the row's kind: that is all a server of class means will see. Reads
/// "embeddings", "latents", "kinds"; ends with "weights" [P], their running mean.
[[nodiscard]] program_ref denoiser_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);

struct generation_settings {
  std::int64_t images = 50;    ///< Z
  std::int64_t candidates = 2; ///< Images made for each that is kept.
  std::int64_t steps = 25;     ///< DDIM's, of diffusion_times.
  double guidance = 1.0;       ///< w of unconditional + w (conditional - unconditional): 1 is the conditional alone.
};
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
