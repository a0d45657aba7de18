/// task_sizes: how many classes each task of a class-incremental run has.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <tl/expected.hpp>
namespace mneme {

/// Why classes cannot be dealt over tasks.
struct task_size_error {
  std::string key{};  ///< "tasks.count"
  std::string text{}; ///< Begins with the key and its value.
};

/// Classes of each task of a class-incremental run with `classes` classes: tasks.sizes, or an even split of the classes
/// after tasks.first_classes. If there is a remainder, each of the first tasks of the split has one class more, as in
/// FACIL and numpy.array_split.
[[nodiscard]] tl::expected<std::vector<std::int64_t>, task_size_error> task_sizes(const tasks_section& tasks,
                                                                                  std::int64_t classes);

} // namespace mneme
