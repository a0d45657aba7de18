#include "runtime/results/class_scores.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <numeric>
#include <vector>
namespace mneme {
namespace {

constexpr std::size_t batch_rows = 128;

struct class_counts {
  std::int64_t rows = 0, answers = 0, right = 0; // tp + fn, tp + fp and tp, with t: true, f: false, p: positive, n:
                                                 // negative
};

class_scores sums_of(const std::vector<class_counts>& counts) {
  class_scores sums;
  for (const auto& scores : counts) {
    if (scores.right == 0)
      continue;
    const auto right = static_cast<double>(scores.right);
    sums.recall += right / static_cast<double>(scores.rows);
    sums.f1 += 2.0 * right / static_cast<double>(scores.rows + scores.answers);
  }
  return sums;
}

/// Counts rows, predictions and correct predictions by class, for the given row indices.
class row_counter {
public:
  explicit row_counter(const class_answers& rows) : rows_(rows), counts_(static_cast<std::size_t>(rows.classes)) {
    MNEME_CHECK(rows.labels.size() == rows.answers.size(), rows.labels.size(), rows.answers.size());
  }
  void add(std::size_t row) {
    const auto label = rows_.labels[row], answer = rows_.answers[row];
    auto& own = counts_.at(static_cast<std::size_t>(label));
    ++own.rows;
    ++counts_.at(static_cast<std::size_t>(answer)).answers;
    own.right += label == answer;
  }
  [[nodiscard]] const std::vector<class_counts>& counts() const { return counts_; }

private:
  const class_answers& rows_;
  std::vector<class_counts> counts_;
};

class_scores in_percent(const class_scores& sums, double parts) {
  return parts == 0.0 ? class_scores{} : class_scores{100.0 * sums.recall / parts, 100.0 * sums.f1 / parts};
}

} // namespace

class_scores scores_of(const class_answers& all_rows) {
  row_counter counter(all_rows);
  for (std::size_t row = 0; row < all_rows.labels.size(); ++row)
    counter.add(row);
  const auto tested = std::count_if(counter.counts().begin(), counter.counts().end(),
                                    [](const class_counts& scores) { return scores.rows > 0; });
  return in_percent(sums_of(counter.counts()), static_cast<double>(tested));
}

class_scores batch_scores_of(const class_answers& all_rows, const rng_key& order) {
  std::vector<std::int64_t> rows(all_rows.labels.size());
  std::iota(rows.begin(), rows.end(), 0);
  rng_stream(order).shuffle(std::span(rows));
  class_scores sums;
  double batches = 0.0;
  for (std::size_t first = 0; first < rows.size(); first += batch_rows, ++batches) {
    row_counter counter(all_rows);
    for (auto i = first; i < std::min(first + batch_rows, rows.size()); ++i)
      counter.add(static_cast<std::size_t>(rows[i]));
    const auto batch = sums_of(counter.counts());
    sums.recall += batch.recall;
    sums.f1 += batch.f1;
  }
  return in_percent(sums, batches * static_cast<double>(all_rows.classes));
}

double predicted_share(const class_answers& all_rows, class_range classes) {
  const auto taken = std::count_if(all_rows.answers.begin(), all_rows.answers.end(),
                                   [&](std::int32_t answer) { return classes.low <= answer && answer < classes.high; });
  const auto rows = std::max<double>(static_cast<double>(all_rows.answers.size()), 1.0);
  return 100.0 * static_cast<double>(taken) / rows;
}

std::map<std::string, double> class_metrics(const class_answers& all_rows, std::uint64_t seed) {
  const auto whole = scores_of(all_rows);
  const auto batches = batch_scores_of(all_rows, key_for({.seed = seed}, purpose::scored_batches));
  return {{"macro_recall", whole.recall},
          {"macro_f1", whole.f1},
          {"batch_recall", batches.recall},
          {"batch_f1", batches.f1}};
}

} // namespace mneme
