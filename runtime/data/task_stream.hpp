/// task_stream: classes, domain and transform of each task, and the rows that belong to it.
#pragma once
#include "runtime/base/class_range.hpp"
#include "runtime/base/diagnostic.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct task_rows {
  class_range classes{};                   ///< Labels that occur in the task.
  std::vector<std::int64_t> train{};       ///< Rows of `task_stream::train`, ascending.
  std::vector<std::int64_t> test{};        ///< Rows of `task_stream::test`, ascending.
  std::vector<std::int64_t> public_rows{}; ///< Public rows of `task_stream::train`, disjoint from `train`.
};

struct task_stream {
  std::shared_ptr<const dataset> train{}, test{};
  std::int64_t classes = 0; ///< Number of labels of the run, which is the number of head outputs.
  std::int64_t tokens = 0;  ///< See raw_data.
  std::vector<task_rows> tasks{};
  /// Name or class number of each label. Empty if a label represents several classes.
  std::vector<std::string> class_names{};
  std::vector<std::int64_t> drawn_rows{}; ///< See raw_data.
  /// Labels of tasks 0 to t; a range that starts at 0.
  [[nodiscard]] class_range seen_classes(task_id t) const;
};

/// NumPy's legacy permutation of n numbers (MT19937). Seed 1993 and n = 100 give 68 56 78 8 23 ...
[[nodiscard]] std::vector<std::int64_t> legacy_numpy_permutation(std::uint32_t seed, std::int64_t n);

/// The original class at each position, by `tasks.class_order`; labels are positions. Fails if a list is not a
/// permutation, or if icarl87 is used with a number of classes other than 100.
[[nodiscard]] expected<std::vector<std::int64_t>> class_order(const scenario& from, std::int64_t classes);

/// The original classes that the tasks use, ascending. @param data only its classes and domains are used
[[nodiscard]] expected<std::vector<std::int64_t>> classes_used(const scenario& from, const raw_data& data);

/// Splits the data into tasks. For an impossible combination, such as too few domains, fails with an error at the key
/// that causes it.
[[nodiscard]] expected<task_stream> make_task_stream(const scenario& from, raw_data data);

} // namespace mneme
