/// class_scores: recall and F1 by class, over a test set as a whole and as papers that score batches print them.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/rng.hpp"
#include <map>
#include <span>
#include <string>
namespace mneme {

/// Rows of a test set: what they are, and what they are taken for.
struct class_answers {
  std::span<const std::int32_t> labels{}, answers{}; ///< [n] each, from 0 below `classes`.
  std::int64_t classes = 0;
};

/// Mean over classes of recall, tp / (tp + fn), and of F1, 2 tp / (2 tp + fp + fn), in percent.
struct class_scores {
  double recall = 0.0, f1 = 0.0;
};
/// Over the classes that have rows: of a balanced test set, the recall is its accuracy. Zeros without rows.
[[nodiscard]] class_scores scores_of(const class_answers& all_rows);
/// The mean of the scores of batches of 128 rows, the last one as it comes, in a drawn order. A class that a batch
/// lacks counts as 0 in it: so LGA's tables have them (Dong et al. 2023, table 11), where a hundred classes leave 0.724
/// of the accuracy. Not to be compared with scores_of().
[[nodiscard]] class_scores batch_scores_of(const class_answers& all_rows, const rng_key& order);

/// Rows that are taken for one of these classes, in percent of all: of the newest task's classes what it favours them
/// by, where every class has as many rows and their part of the classes is less (Wu et al. 2019, BiC).
[[nodiscard]] double share_taken_for(const class_answers& all_rows, class_range classes);

/// "macro_recall", "macro_f1", "batch_recall", "batch_f1" of summary.json. @param seed the run's
[[nodiscard]] std::map<std::string, double> class_figures(const class_answers& all_rows, std::uint64_t seed);

} // namespace mneme
