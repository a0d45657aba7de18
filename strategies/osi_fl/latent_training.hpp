/// latent_training: trains the nets of a small latent diffusion model.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: n public rows, E numbers of an embedding, L numbers of a latent, P parameters of a net.

/// Number of diffusion steps, with the cosine noise schedule (Nichol and Dhariwal 2021).
inline constexpr std::int64_t diffusion_times = 400;

/// A program that trains the encoder to classify kinds. Reads "kinds" [n] int64; returns "weights" [P].
[[nodiscard]] program_ref encoder_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);
/// A program that trains the denoiser to predict velocities under conditions. A tenth of the conditions is dropped (Ho
/// and Salimans 2022). Three quarters of the conditions are means of 1 to 50 embeddings of the row's kind, because
/// generation receives only class means. Reads "embeddings" [n, E], "latents" [n, L] and "kinds" [n] int64; returns
/// "weights" [P], a running mean over the steps.
[[nodiscard]] program_ref denoiser_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);

} // namespace mneme
