/// task_stream: which classes, domains or transforms make up each task, and which rows belong to it.
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
  std::vector<std::int64_t> open{};  ///< Rows of `task_stream::train` that are public: none of them is in `train`.
};

struct task_stream {
  std::shared_ptr<const dataset> train{}, test{};
  std::int64_t classes = 0; ///< Classes of the run: heads have as many rows.
  std::int64_t tokens = 0;  ///< As in raw_data.
  std::vector<task_rows> tasks{};
  /// What the data set calls each label: a name, or the number of the class; empty where tasks share labels of several
  /// classes.
  std::vector<std::string> class_names{};
  std::vector<std::int64_t> drawn_rows{}; ///< As in raw_data.
  /// Labels of tasks 0 .. t: always a range from 0.
  [[nodiscard]] class_range opened(task_id t) const;
};

/// The legacy NumPy permutation of seed 1993 for `n` classes (MT19937; 68 56 78 8 23 ... for 100).
[[nodiscard]] std::vector<std::int64_t> legacy_numpy_permutation(std::uint32_t seed, std::int64_t n);

/// Original class at each position of the order, `tasks.class_order` applied. Label = position.
/// Fails on a list that is not a permutation, or on icarl87/np1993 where the classes are not 100
/// (np1993: any number).
[[nodiscard]] expected<std::vector<std::int64_t>> class_order(const scenario& from, std::int64_t classes);

/// The original classes that tasks of the scenario are made of, ascending. @param data tells classes and domains only
[[nodiscard]] expected<std::vector<std::int64_t>> classes_used(const scenario& from, const raw_data& data);

/// Splits the data into tasks by section 5; impossible combinations (classes that do not divide,
/// too few domains) are diagnostics at the key that causes them.
[[nodiscard]] expected<task_stream> make_task_stream(const scenario& from, raw_data data);

} // namespace mneme
