/// geodesic_flow: distance of features along the geodesic between the subspaces of old and new features (Gong et al.
/// 2012; Simon et al. 2021, GeoDL). All computations are in float64.
#pragma once
#include "strategies/shared/row_losses.hpp"
namespace mneme {

// Axes: R rows of a step, D features, r directions of a subspace.

/// Form of the geodesic term: one minus a cosine similarity, or a squared distance, both with the metric G.
enum class geodesic_form : std::uint8_t { cosine, difference };

/// Returns the first left singular vectors [D, r] of the transposed features, after each row's own mean has been
/// subtracted. r is at most min(R, D) - 2. Directions with a singular value below 1e-6 of the largest are dropped.
/// @param unit_features [R, D]
[[nodiscard]] at::Tensor subspace_basis(const at::Tensor& unit_features);
/// Returns G [D, D], the integral of the projections along the geodesic.
/// @param from, to [D, r] with orthonormal columns
[[nodiscard]] at::Tensor geodesic_flow(const at::Tensor& from, const at::Tensor& to);
/// Returns the geodesic term of each row, [R], with gradient for `features` only.
/// @param features, teacher_output [R, D] raw features of student and teacher
/// @param flow G [D, D], constant
[[nodiscard]] at::Tensor geodesic_rows(const at::Tensor& features, const at::Tensor& teacher_output,
                                       const at::Tensor& flow, geodesic_form form);

} // namespace mneme
