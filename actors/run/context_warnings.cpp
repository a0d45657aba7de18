#include "actors/run/context_warnings.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

/// Warns if classes do not divide evenly over the tasks and the scenario lists no sizes.
diagnostics uneven_task_warnings(const scenario& settings, const task_stream& stream) {
  const auto& tasks = settings.tasks;
  const std::size_t first = tasks.first_classes > 0 ? 1 : 0;
  if (tasks.kind != task_kind::class_incremental || !tasks.sizes.empty() || stream.tasks.size() <= first)
    return {};
  if (stream.tasks[first].classes.size() == stream.tasks.back().classes.size())
    return {};
  constexpr std::size_t listed_max = 20;
  std::vector<std::int64_t> sizes;
  for (const auto& task : stream.tasks)
    if (sizes.size() < listed_max)
      sizes.push_back(task.classes.size());
  return {{settings.where("tasks.count"), fmt::format("tasks.count = {}: {} classes do not divide evenly, so the tasks "
                                                      "have [{}{}] classes; set tasks.sizes to choose other sizes",
                                                      tasks.count, stream.classes, fmt::join(sizes, ", "),
                                                      stream.tasks.size() > listed_max ? ", ..." : "")}};
}

/// Warns if training.drop_last leaves clients without a training step.
diagnostics dropped_batch_warnings(const scenario& settings, const task_stream& stream, const partition& split) {
  const auto batch = settings.training.batch;
  if (!settings.training.drop_last || batch == 0)
    return {};
  std::int64_t idle_max = 0;
  std::size_t task_of_max = 0;
  for (std::size_t task = 0; task < stream.tasks.size(); ++task) {
    std::int64_t idle = 0;
    for (std::int64_t client = 0; client < settings.clients.count; ++client) {
      const auto rows = split.size({static_cast<std::uint32_t>(client)}, {static_cast<std::uint32_t>(task)});
      idle += rows > 0 && rows < batch ? 1 : 0;
    }
    if (idle > idle_max) {
      idle_max = idle;
      task_of_max = task;
    }
  }
  if (idle_max == 0)
    return {};
  return {{settings.where("training.drop_last"),
           fmt::format("training.drop_last = true: in task {} {} of {} clients {} fewer rows than a batch of {}; such "
                       "clients do not train and upload the weights they received; expected a smaller training.batch",
                       task_of_max + 1, idle_max, settings.clients.count, idle_max == 1 ? "holds" : "hold", batch)}};
}

} // namespace

diagnostics context_warnings(const scenario& settings, const task_stream& stream, const partition* split) {
  auto warnings = uneven_task_warnings(settings, stream);
  if (!split)
    return warnings;
  append(warnings, dropped_batch_warnings(settings, stream, *split));
  if (split->drawn_rows() > 0)
    warnings.push_back(
        {settings.where("partition.file"),
         fmt::format(
             "{} rows of partition.file are test rows (selected by data.test_share = {}), so no client holds them",
             split->drawn_rows(), settings.data.test_share)});
  return warnings;
}

} // namespace mneme
