/// geodesic_flow: how far features lie apart along the geodesic between the subspaces that old and new ones span (Gong
/// et al. 2012; Simon et al. 2021, GeoDL). All in float64.
#pragma once
#include "strategies/shared/row_losses.hpp"
namespace mneme {

// Axes: R rows of a step, D features, r directions of a subspace.

enum class geodesic_form : std::uint8_t { cosine, difference };

/// The first min(R, D) - 2 left singular vectors of the features less their own means, or fewer: [D, r].
/// @param unit_features [R, D]
[[nodiscard]] at::Tensor spanned_directions(const at::Tensor& unit_features);
/// G [D, D]: the integral of projections along the geodesic. @param from, to [D, r] of orthonormal columns
[[nodiscard]] at::Tensor geodesic_flow(const at::Tensor& from, const at::Tensor& to);
/// The geodesic term of rows of raw features [R, D] under a constant G.
[[nodiscard]] at::Tensor geodesic_rows(const at::Tensor& features, const at::Tensor& taught, const at::Tensor& flow,
                                       geodesic_form form);

} // namespace mneme
