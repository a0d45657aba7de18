/// caption_embeddings: programs that caption the images of a job and encode the captions.
#pragma once
#include "strategies/osi_fl/diffusion/captioner.hpp"
#include "strategies/osi_fl/latent_nets.hpp"
namespace mneme {

// Axes: n rows of a job, E numbers of an embedding.

/// A program that computes the mean embedding of each class (OSI-FL, eq. 9), with sums in float64 in row order. Returns
/// "means" [classes, E], zeros for a class without rows, and "counts" [classes] int64. A slice passes a few rows of
/// every job through the modules in one batch.
[[nodiscard]] program_ref encode_class_means(std::shared_ptr<const captioner> by, pixel_normalization pixels,
                                             std::int64_t classes);
/// A program that computes the embedding of each row. Returns "embeddings" [n, E].
[[nodiscard]] program_ref caption_embeddings(std::shared_ptr<const captioner> by, pixel_normalization pixels);

} // namespace mneme
