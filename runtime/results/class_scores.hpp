/// class_scores: recall and F1 by class, over a whole test set or averaged over batches as in some papers.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/rng.hpp"
#include <map>
#include <span>
#include <string>
namespace mneme {

/// Labels and predictions of a test set.
struct class_answers {
  std::span<const std::int32_t> labels{}, answers{}; ///< [n] each; class numbers in [0, classes).
  std::int64_t classes = 0;
};

/// Means over classes, in percent: recall = tp / (tp + fn), f1 = 2 tp / (2 tp + fp + fn).
struct class_scores {
  double recall = 0.0, f1 = 0.0;
};
/// Scores over the classes that have rows; 0 without rows. On a balanced test set, recall equals accuracy.
[[nodiscard]] class_scores scores_of(const class_answers& all_rows);
/// Mean of the scores of batches of 128 rows in random order; the last batch may be shorter. A class without rows in a
/// batch counts as 0, as in LGA's tables (Dong et al. 2023, table 11). With 100 classes, the result is 0.724 times the
/// accuracy. These scores are not comparable with scores_of().
[[nodiscard]] class_scores batch_scores_of(const class_answers& all_rows, const rng_key& order);

/// Share in percent of rows that are predicted as one of `classes`. For the classes of the newest task it measures the
/// bias towards them (Wu et al. 2019, BiC).
[[nodiscard]] double predicted_share(const class_answers& all_rows, class_range classes);

/// The metrics "macro_recall", "macro_f1", "batch_recall" and "batch_f1" for summary.json. @param seed seed of the run
[[nodiscard]] std::map<std::string, double> class_metrics(const class_answers& all_rows, std::uint64_t seed);

} // namespace mneme
