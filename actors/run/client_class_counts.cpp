#include "actors/run/client_class_counts.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/data/client_classes.hpp"
namespace mneme {

expected<client_class_counts> count_client_classes(const scenario& settings) {
  std::shared_ptr<const partition> split;
  const auto context = load_run_context(settings, {.split = &split, .use = run_context_use::check});
  if (!context)
    return tl::unexpected(context.error());
  const auto& tasks = *(*context)->tasks;
  client_class_counts counts{.classes = tasks.class_names,
                             .rows = rows_by_client_and_class(*split, tasks, settings.clients.count)};
  for (auto label = std::ssize(counts.classes); label < tasks.classes; ++label)
    counts.classes.push_back(std::to_string(label));
  return counts;
}

} // namespace mneme
