#include "runtime/data/task_definition.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <utility>
namespace mneme {
namespace {

using plans = std::vector<task_definition>;

/// What the data set has to offer.
struct extent {
  std::int64_t classes = 0; ///< Cut to tasks.classes.
  std::int64_t domains = 1;
  std::string name{}; ///< Name of the data set.
};

std::string number(std::int64_t n) { return std::to_string(n); }

/// "2 tasks", "1 task".
std::string counted(std::int64_t n, const std::string& noun, const std::string& many) {
  return number(n) + " " + (n == 1 ? noun : many);
}

/// The divisors of `n` next to `wished` from above and below: "5 or 2".
std::string divisors_near(std::int64_t n, std::int64_t wished, std::int64_t offset) {
  std::int64_t above = wished + 1, below = std::min(wished, n);
  while (above < n && n % above != 0)
    ++above;
  while (below > 1 && n % below != 0)
    --below;
  if (above > n)
    return number(below + offset);
  return number(above + offset) + " or " + number(below + offset);
}

/// Why the classes cannot be dealt, and the nearest numbers with which they could. `first`: those of
/// a larger first task, or 0.
tl::unexpected<diagnostics> uneven(const scenario& from, std::int64_t classes, std::int64_t first, std::int64_t later) {
  const std::int64_t dealt = classes - first, offset = first > 0 ? 1 : 0;
  const std::int64_t enough = first + dealt / later * later;
  std::string text = counted(dealt, "class does", "classes do") + " not divide evenly over " +
                     counted(later, "task", "tasks") + (first > 0 ? " after a first task of " + number(first) : "") +
                     "; tasks.count = " + divisors_near(dealt, later, offset) + " would";
  if (enough > first)
    text += ", or tasks.classes = " + number(enough);
  return failed(from.where("tasks.count"), std::move(text));
}

expected<plans> class_incremental(const scenario& from, const extent& data) {
  const auto& tasks = from.tasks;
  const std::int64_t first = tasks.first_classes, later = tasks.count - (first > 0 ? 1 : 0);
  if (first > data.classes)
    return failed(from.where("tasks.first_classes"), "the first task takes " + number(first) +
                                                         " classes and the run has " + number(data.classes) +
                                                         "; expected fewer");
  if (later == 0 && first < data.classes)
    return failed(from.where("tasks.first_classes"),
                  "one task of " + number(first) + " classes leaves " + number(data.classes - first) + " of " +
                      number(data.classes) +
                      " unused; expected tasks.first_classes = 0, a larger tasks.count, or "
                      "tasks.classes = " +
                      number(first));
  if (later > 0 && first == data.classes)
    return failed(from.where("tasks.first_classes"), "the first task takes all " + number(data.classes) +
                                                         " classes and leaves none for the " +
                                                         counted(later, "task", "tasks") + " after it; expected fewer");
  if (later > 0 && (data.classes - first) % later != 0)
    return uneven(from, data.classes, first, later);
  plans planned;
  const std::int64_t each = later > 0 ? (data.classes - first) / later : 0;
  for (std::int64_t low = 0, high = first > 0 ? first : each; low < data.classes;
       low = std::exchange(high, high + each))
    planned.push_back({.positions = {low, high}, .labels = {low, high}});
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
  for (std::int32_t task = 0; task < tasks.count; ++task)
    planned.push_back({every, every, by_domain ? task : -1, by_domain ? 0 : task});
  return planned;
}

expected<extent> offered(const scenario& from, const raw_data& data) {
  const std::int64_t classes = from.tasks.classes;
  if (classes > data.classes)
    return failed(from.where("tasks.classes"), counted(classes, "class", "classes") + " asked for and " + data.name +
                                                   " has " + number(data.classes) +
                                                   "; expected at most so many, or 0 for all");
  return extent{classes > 0 ? classes : data.classes, std::max<std::int64_t>(1, std::ssize(data.domain_names)),
                data.name};
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
