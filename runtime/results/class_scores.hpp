/// class_scores: recall and F1 by class, over a whole test set, and as mean over batches as in some papers.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/rng.hpp"
#include <map>
#include <span>
#include <string>
namespace mneme {

/// Labels and predictions of a test set.
struct class_answers {
  std::span<const std::int32_t> labels{}, answers{}; ///< [n] each, in [0, classes).
  std::int64_t classes = 0;
};

/// Means over classes, in percent, of recall tp / (tp + fn) and of F1 2 tp / (2 tp + fp + fn).
struct class_scores {
  double recall = 0.0, f1 = 0.0;
};
/// Scores over the classes that have rows. For a balanced test set the recall equals the accuracy. Zeros without rows.
[[nodiscard]] class_scores scores_of(const class_answers& all_rows);
/// Mean of the scores of batches of 128 rows (the last may be shorter) in random order. A class without rows in a batch
/// counts as 0 there, as in LGA's tables (Dong et al. 2023, table 11); with 100 classes this gives 0.724 of the
/// accuracy. Not comparable with scores_of().
[[nodiscard]] class_scores batch_scores_of(const class_answers& all_rows, const rng_key& order);

/// Share of rows predicted as one of `classes`, in percent. With the classes of the newest task it measures the bias
/// towards them (Wu et al. 2019, BiC).
[[nodiscard]] double share_taken_for(const class_answers& all_rows, class_range classes);

/// "macro_recall", "macro_f1", "batch_recall" and "batch_f1" of summary.json. @param seed of the run
[[nodiscard]] std::map<std::string, double> class_figures(const class_answers& all_rows, std::uint64_t seed);

} // namespace mneme
