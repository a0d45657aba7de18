/// retained_rows: selection of the generated images that a server retains, and their weights in later tasks.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
namespace mneme {

// Axes: n rows.

/// Returns, for each label, the positions of the `count` rows with the largest scores, or of all rows if the label has
/// fewer. This is the subset with the largest sum of scores (OSI-FL, eqs. 14 and 15). Labels ascend and scores descend;
/// ties keep row order. @param scores, labels [n]
[[nodiscard]] std::vector<std::int64_t> retained_rows(std::span<const double> scores,
                                                      std::span<const std::int64_t> labels, std::int64_t count);

/// Row weights for eq. 16 of OSI-FL: with them, the mean over all rows is the sum of the tasks' mean losses, up to a
/// common factor. A row has weight 1 / rows of its task, scaled to mean 1. New rows come first.
/// @param retained number of retained rows of each earlier task; tasks without rows are ignored
[[nodiscard]] std::vector<float> weights_by_task(std::int64_t fresh, std::span<const std::int64_t> retained);

} // namespace mneme
