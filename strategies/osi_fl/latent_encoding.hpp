/// latent_encoding: encodes rows for a small latent diffusion model, as embeddings and as latents by principal
/// components.
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: n rows, E numbers of an embedding, L numbers of a latent.

/// A program that computes the principal components of the rows' pixels in `passes` passes. Returns the tensors of
/// image_components.
[[nodiscard]] program_ref component_analysis(const latent_shape& shape, std::int64_t passes);
/// A program that encodes the rows. Reads "encoder", or "embeddings" [n, E], which it returns unchanged, and the
/// tensors of image_components. Returns "embeddings" [n, E] and "latents" [n, L].
[[nodiscard]] program_ref latent_encoding(const latent_shape& shape);

} // namespace mneme
