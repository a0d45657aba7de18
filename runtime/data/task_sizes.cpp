#include "runtime/data/task_sizes.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
namespace mneme {
namespace {

/// Formats "2 tasks" or "1 task".
std::string tasks_text(std::int64_t n) { return fmt::format("{} task{}", n, n == 1 ? "" : "s"); }
/// Formats "2 classes" or "1 class".
std::string classes_text(std::int64_t n) { return fmt::format("{} class{}", n, n == 1 ? "" : "es"); }

using sizes_or_error = tl::expected<std::vector<std::int64_t>, task_size_error>;

template <class Value>
sizes_or_error size_error(const std::string& key, const Value& value, const std::string& text) {
  return tl::unexpected(task_size_error{key, fmt::format("{} = {}: {}", key, value, text)});
}

/// Validates tasks.sizes. The sum must equal the number of classes.
sizes_or_error listed_sizes(const tasks_section& tasks, std::int64_t classes) {
  const auto& sizes = tasks.sizes;
  if (tasks.first_classes > 0)
    return size_error(
        "tasks.sizes", sizes,
        fmt::format("the list already contains the size of the first task; expected tasks.first_classes = 0, found {}",
                    tasks.first_classes));
  if (std::ssize(sizes) != tasks.count)
    return size_error("tasks.sizes", sizes,
                      fmt::format("{} size{} for {}; expected one for each, or no tasks.count", sizes.size(),
                                  sizes.size() == 1 ? "" : "s", tasks_text(tasks.count)));
  const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (sum > classes)
    return size_error("tasks.sizes", sizes,
                      fmt::format("the sizes add up to {}, and the run has {}; expected a sum of {}", sum,
                                  classes_text(classes), classes));
  if (sum < classes)
    return size_error("tasks.sizes", sizes,
                      fmt::format("the sizes add up to {} of {}; expected a sum of {}, or tasks.classes = {} to leave "
                                  "the others unused",
                                  sum, classes_text(classes), classes, sum));
  return sizes;
}

/// Error text for `rest` classes that cannot be split over the tasks after the first.
std::string first_task_error(std::int64_t classes, std::int64_t rest, std::int64_t others) {
  if (rest < 0)
    return fmt::format("the run has {}; expected fewer", classes_text(classes));
  if (rest == 0)
    return fmt::format("the first task takes all {} and leaves none for the {} after it; expected fewer",
                       classes_text(classes), tasks_text(others));
  return fmt::format("leaves {} for {}; expected at least one for each", classes_text(rest), tasks_text(others));
}

} // namespace

tl::expected<std::vector<std::int64_t>, task_size_error> task_sizes(const tasks_section& tasks, std::int64_t classes) {
  if (!tasks.sizes.empty())
    return listed_sizes(tasks, classes);
  const std::int64_t first = tasks.first_classes, others = tasks.count - (first > 0 ? 1 : 0), rest = classes - first;
  if (first > 0 && rest < others)
    return size_error("tasks.first_classes", first, first_task_error(classes, rest, others));
  if (others == 0 && rest > 0)
    return size_error("tasks.first_classes", first,
                      fmt::format("the only task leaves {} of {} unused; expected tasks.first_classes = 0, a larger "
                                  "tasks.count, or tasks.classes = {}",
                                  rest, classes_text(classes), first));
  if (rest < others)
    return size_error("tasks.count", tasks.count,
                      fmt::format("{} {} not give each task one; expected at most {}", classes_text(classes),
                                  classes == 1 ? "does" : "do", classes));
  std::vector<std::int64_t> sizes;
  if (first > 0)
    sizes.push_back(first);
  for (std::int64_t task = 0; task < others; ++task)
    sizes.push_back(rest / others + (task < rest % others ? 1 : 0));
  return sizes;
}

} // namespace mneme
