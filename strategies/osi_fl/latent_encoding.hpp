/// latent_encoding: what a small latent diffusion model makes of rows: embeddings, and latents by principal components.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: n rows; E numbers of an embedding, L of a latent.

/// The principal components of the rows' pixels, by `passes` passes over them. Ends with the tensors of
/// image_components.
[[nodiscard]] program_ref component_analysis(const latent_shape& shape, std::int64_t passes);
/// What encoder and components make of the rows. Reads "encoder" (or "embeddings" [n, E], which it hands on) and the
/// tensors of image_components; ends with "embeddings" [n, E] and "latents" [n, L].
[[nodiscard]] program_ref latent_encoding(const latent_shape& shape);

} // namespace mneme
