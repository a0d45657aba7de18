/// aggregation_rules: robust replacements for the mean of uploads.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <span>
#include <vector>
namespace mneme {

// U uploads of n entries each. All uploads count equally.

/// One upload: [n] float32. Pointers of several uploads are in delivery order, which decides ties.
using upload_values = std::span<const float>;

/// Median of each entry; the mean of the middle two if U is even (Yin et al. 2018, definition 1).
/// @pre there is an upload, and all have the same size
[[nodiscard]] std::vector<float> median_of(std::span<const upload_values> uploads);
/// Mean of each entry after removing its floor(trim * U) smallest and its floor(trim * U) largest values (Yin et al.
/// 2018, definition 2).
/// @param trim in [0, 0.5)
[[nodiscard]] std::vector<float> trimmed_mean_of(std::span<const upload_values> uploads, double trim);
/// Indices of the `selected` uploads with the lowest Krum scores, best first. The score of an upload is the sum of its
/// squared distances to its max(1, U - byzantine - 2) closest other uploads (Blanchard et al. 2017, section 4).
[[nodiscard]] std::vector<std::size_t> krum_choice(std::span<const upload_values> uploads, std::int64_t byzantine,
                                                   std::int64_t selected);
/// The result of the rule of [aggregation]. Sums are in float64. @pre rule is not `mean`
[[nodiscard]] std::vector<float> aggregate_uploads(std::span<const upload_values> uploads,
                                                   const aggregation_section& options);

} // namespace mneme
