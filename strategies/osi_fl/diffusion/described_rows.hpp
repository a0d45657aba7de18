/// described_rows: programs that caption the pictures of a job and encode the captions.
#pragma once
#include "strategies/osi_fl/latent_nets.hpp"
#include "strategies/osi_fl/diffusion/captioner.hpp"
namespace mneme {

// Axes: n rows of a job, E numbers of an embedding.

/// The mean embedding of each class (OSI-FL, eq. 9), summed in float64 in the order of rows. Ends with "means"
/// [classes, E] (zeros where there are no rows) and "counts" [classes] int64. Rows of all jobs of a batch go through
/// the modules together, a few of each in a slice.
[[nodiscard]] program_ref described_class_means(std::shared_ptr<const captioner> by, pixel_normalisation pixels,
                                                std::int64_t classes);
/// The embedding of each row. Ends with "embeddings" [n, E].
[[nodiscard]] program_ref described_rows(std::shared_ptr<const captioner> by, pixel_normalisation pixels);

} // namespace mneme
