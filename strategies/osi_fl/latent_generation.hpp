/// latent_generation: images that a small latent diffusion model makes under conditions, and the conditions of clients.
#pragma once
#include "strategies/osi_fl/latent_sampling.hpp"
namespace mneme {

// Axes: C channels, H height, W width; E numbers of an embedding; Z images of a job.

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
