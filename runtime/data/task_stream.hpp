/// task_stream: classes, domain or transform of each task, and the rows that belong to it.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct task_rows {
  class_range classes{};             ///< Labels that occur in the task.
  std::vector<std::int64_t> train{}; ///< Rows of `task_stream::train`, ascending.
  std::vector<std::int64_t> test{};  ///< Rows of `task_stream::test`, ascending.
  std::vector<std::int64_t> open{};  ///< Public rows of `task_stream::train`, disjoint from `train`.
};

struct task_stream {
  std::shared_ptr<const dataset> train{}, test{};
  std::int64_t classes = 0; ///< Classes of the run = rows of the head.
  std::int64_t tokens = 0;  ///< As in raw_data.
  std::vector<task_rows> tasks{};
  /// Name of each label, or the number of its class; empty if labels stand for several classes.
  std::vector<std::string> class_names{};
  std::vector<std::int64_t> drawn_rows{}; ///< As in raw_data.
  /// Labels of tasks 0 to t, a range from 0.
  [[nodiscard]] class_range opened(task_id t) const;
};

/// NumPy's legacy permutation for `n` classes (MT19937; seed 1993 and n = 100 give 68 56 78 8 23 ...).
[[nodiscard]] std::vector<std::int64_t> legacy_numpy_permutation(std::uint32_t seed, std::int64_t n);

/// Original class at each position, from `tasks.class_order`. The label is the position. Fails if a list is not a
/// permutation, or if icarl87 is used without 100 classes.
[[nodiscard]] expected<std::vector<std::int64_t>> class_order(const scenario& from, std::int64_t classes);

/// The original classes that the tasks use, ascending. @param data only its classes and domains are read
[[nodiscard]] expected<std::vector<std::int64_t>> classes_used(const scenario& from, const raw_data& data);

/// Splits the data into tasks. Impossible combinations (such as too few domains) are diagnostics at the key that causes
/// them.
[[nodiscard]] expected<task_stream> make_task_stream(const scenario& from, raw_data data);

} // namespace mneme
