/// latent_training: how the nets of a small latent diffusion model are trained.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: n public rows; E numbers of an embedding, L of a latent, P parameters of a net.

/// Steps of diffusion, whose noise follows the cosine schedule (Nichol and Dhariwal 2021).
inline constexpr std::int64_t diffusion_times = 400;

/// The encoder learns to tell kinds apart. Reads "kinds" [n] int64; ends with "weights" [P].
[[nodiscard]] program_ref encoder_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);
/// The denoiser learns velocities under conditions, of which a tenth is left out (Ho and Salimans 2022), and three in
/// four are means of 1 to 50 embeddings of the row's kind: that is all a server of class means will see. Reads
/// "embeddings" [n, E], "latents" [n, L], "kinds" [n] int64; ends with "weights" [P], their running mean.
[[nodiscard]] program_ref denoiser_training(const latent_shape& shape, std::int64_t passes, std::int64_t batch);

} // namespace mneme
