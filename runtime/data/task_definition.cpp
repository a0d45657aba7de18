#include "runtime/data/task_definition.hpp"
#include "runtime/base/check.hpp"
#include "runtime/data/domain_order.hpp"
#include "runtime/data/task_sizes.hpp"
#include <algorithm>
#include <utility>
namespace mneme {
namespace {

using plans = std::vector<task_definition>;

/// Classes and domains of the data set that are available to the tasks.
struct extent {
  std::int64_t classes = 0; ///< At most tasks.classes.
  std::int64_t domains = 1;
  std::string name{};                      ///< Name of the data set.
  std::vector<std::string> domain_names{}; ///< Empty if the data set has one unnamed domain.
};

std::string number(std::int64_t n) { return std::to_string(n); }

/// Formats a count with its noun: "2 tasks", "1 task".
std::string counted(std::int64_t n, const std::string& noun, const std::string& many) {
  return number(n) + " " + (n == 1 ? noun : many);
}

expected<plans> class_incremental(const scenario& from, const extent& data) {
  const auto sizes = task_sizes(from.tasks, data.classes);
  if (!sizes)
    return failed(from.where(sizes.error().key), sizes.error().text);
  plans planned;
  std::int64_t low = 0;
  for (const auto size : *sizes) {
    planned.push_back({.positions = {low, low + size}, .labels = {low, low + size}});
    low += size;
  }
  return planned;
}

expected<plans> class_blocks(const scenario& from, const extent& data) {
  const std::int64_t count = from.tasks.count, each = from.tasks.classes_per_task;
  if (each < 1)
    return failed(from.where("tasks.classes_per_task"),
                  "class-blocks needs the number of classes in a task and found 0; tasks.classes_per_task = " +
                      number(std::max<std::int64_t>(1, data.classes / count)) + " would use all " +
                      number(data.classes));
  if (count > data.classes / each)
    return failed(from.where("tasks.count"),
                  counted(count, "task", "tasks") + " of " + counted(each, "class", "classes") + " are more than the " +
                      number(data.classes) + " classes of " + data.name + "; expected tasks.count <= " +
                      number(data.classes / each) + " or tasks.classes_per_task <= " + number(data.classes / count));
  plans tasks;
  for (std::int64_t task = 0; task < count; ++task)
    tasks.push_back({.positions = {task * each, (task + 1) * each}, .labels = {0, each}});
  return tasks;
}

expected<plans> domain_incremental(const scenario& from, const extent& data) {
  const auto& tasks = from.tasks;
  if (tasks.transform == task_transform::class_blocks)
    return class_blocks(from, data);
  if (tasks.transform == task_transform::none)
    return failed(from.where("tasks.transform"), "domain-incremental tasks differ by a transform and found \"none\"; "
                                                 "expected \"permute\", \"affine\", \"domains\" or \"class-blocks\"");
  const bool by_domain = tasks.transform == task_transform::domains;
  if (by_domain && tasks.count > data.domains)
    return failed(from.where("tasks.count"),
                  counted(tasks.count, "task", "tasks") + " and " + data.name + " has " +
                      counted(data.domains, "domain", "domains") + "; expected tasks.count <= " + number(data.domains) +
                      (data.domains == 1 ? ", or a data set with several (digits, pacs)" : ""));
  const class_range every{0, data.classes};
  plans planned;
  if (!by_domain) {
    for (std::int32_t task = 0; task < tasks.count; ++task)
      planned.push_back({every, every, -1, task});
    return planned;
  }
  const auto order = domain_order(from, data.domain_names);
  if (!order)
    return tl::unexpected(order.error());
  for (std::size_t task = 0; task < static_cast<std::size_t>(tasks.count); ++task)
    planned.push_back({every, every, (*order)[task], 0});
  return planned;
}

expected<extent> offered(const scenario& from, const raw_data& data) {
  const std::int64_t classes = from.tasks.classes;
  if (classes > data.classes)
    return failed(from.where("tasks.classes"), counted(classes, "class", "classes") + " requested, but " + data.name +
                                                   " has " + number(data.classes) +
                                                   "; expected no more than that, or 0 for all");
  return extent{classes > 0 ? classes : data.classes, std::max<std::int64_t>(1, std::ssize(data.domain_names)),
                data.name, data.domain_names};
}

} // namespace

expected<std::vector<task_definition>> plan_tasks(const scenario& from, const raw_data& data) {
  MNEME_CHECK(data.classes > 0, data.name, data.classes);
  const auto extent = offered(from, data);
  if (!extent)
    return tl::unexpected(extent.error());
  switch (from.tasks.kind) {
  case task_kind::class_incremental:
    return class_incremental(from, *extent);
  case task_kind::domain_incremental:
    return domain_incremental(from, *extent);
  case task_kind::single:
    break;
  }
  return plans{{.positions = {0, extent->classes}, .labels = {0, extent->classes}}};
}

} // namespace mneme
