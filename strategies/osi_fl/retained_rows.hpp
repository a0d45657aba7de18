/// retained_rows: which generated images a server keeps of a task that is over, and how much they weigh in later ones.
#pragma once
#include <cstdint>
#include <span>
#include <vector>
namespace mneme {

// Axes: n rows.

/// Positions of the `count` rows with the largest scores of each label, or of all that it has: because the objective of
/// the selection is a plain sum over rows, these are the best subset (OSI-FL, eqs. 14 and 15). Labels ascend, scores
/// fall, and of equal scores the row that comes first is taken. @param scores, labels [n]
[[nodiscard]] std::vector<std::int64_t> retained_rows(std::span<const double> scores,
                                                      std::span<const std::int64_t> labels, std::int64_t count);

/// Weights of rows by which the mean loss over the union is that of the new task plus those of each earlier one, each
/// with weight 1 whatever its size, up to a common factor: 1 / rows of its task, scaled to mean 1 (OSI-FL, eq. 16).
/// New rows come first. @param retained rows kept of each earlier task; tasks without rows count for nothing
[[nodiscard]] std::vector<float> weights_by_task(std::int64_t fresh, std::span<const std::int64_t> retained);

} // namespace mneme
