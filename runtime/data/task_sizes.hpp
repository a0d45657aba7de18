/// task_sizes: number of classes of each task in a class-incremental run.
#pragma once
#include "runtime/settings/scenario.hpp"
#include <tl/expected.hpp>
namespace mneme {

/// The reason why classes cannot be split into tasks.
struct task_size_error {
  std::string key{};  ///< Key at fault, such as "tasks.count".
  std::string text{}; ///< Begins with the key and its value.
};

/// Number of classes of each task: tasks.sizes, or an even split of the classes that remain after tasks.first_classes.
/// If the split has a remainder, the first of these tasks get one more class, as in FACIL and numpy.array_split.
[[nodiscard]] tl::expected<std::vector<std::int64_t>, task_size_error> task_sizes(const tasks_section& tasks,
                                                                                  std::int64_t classes);

} // namespace mneme
