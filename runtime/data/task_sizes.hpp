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

/// Classes of each task of a class-incremental run with `classes` classes: tasks.sizes, or an even deal over
/// tasks.count tasks behind tasks.first_classes. Where an even deal leaves a rest, each of the first tasks has one
/// class more, as in FACIL and numpy.array_split.
[[nodiscard]] tl::expected<std::vector<std::int64_t>, task_size_error> task_sizes(const tasks_section& tasks,
                                                                                  std::int64_t classes);

} // namespace mneme
