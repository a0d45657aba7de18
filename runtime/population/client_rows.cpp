#include "runtime/population/client_rows.hpp"
#include "runtime/base/non_owning.hpp"
#include <algorithm>
namespace mneme {

client_rows::client_rows(std::shared_ptr<const task_stream> tasks, std::shared_ptr<const partition> split,
                         std::shared_ptr<const population> people, row_visibility visibility)
    : tasks_(std::move(tasks)), split_(std::move(split)), population_(std::move(people)), visibility_(visibility) {
  if (central())
    for (std::uint32_t t = 0; t < tasks_->tasks.size(); ++t)
      central_sizes_.push_back(all_clients({t}));
}

bool client_rows::holds(client_id client, task_id task) const {
  return population_->member(client, task) == membership::active;
}

std::uint32_t client_rows::last_shown(task_id during) const {
  return visibility_ == row_visibility::offline ? static_cast<std::uint32_t>(tasks_->tasks.size()) - 1 : during.value;
}

std::int64_t client_rows::all_clients(task_id task) const {
  std::int64_t sum = 0;
  for (std::uint32_t c = 0; c < population_->size(); ++c)
    sum += holds({c}, task) ? split_->size({c}, task) : 0;
  return sum;
}

std::int64_t client_rows::size(client_id client, task_id during) const {
  std::int64_t sum = 0;
  switch (visibility_) {
  case row_visibility::current:
    return holds(client, during) ? split_->size(client, during) : 0;
  case row_visibility::cumulative:
    for (std::uint32_t t = 0; t <= during.value; ++t)
      sum += holds(client, {t}) ? split_->size(client, {t}) : 0;
    return sum;
  case row_visibility::centralized:
  case row_visibility::offline:
    for (std::uint32_t t = 0; client.value == 0 && t <= last_shown(during); ++t)
      sum += central_sizes_[t];
    return sum;
  }
  return 0;
}

std::vector<std::int64_t> client_rows::held(client_id client, task_id task) const {
  return holds(client, task) ? split_->rows(client, task) : std::vector<std::int64_t>{};
}

sample_view client_rows::view(client_id client, task_id during) const {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  auto append = [&](client_id whose, task_id task) {
    if (!holds(whose, task))
      return;
    auto more = split_->rows(whose, task);
    if (rows->empty())
      *rows = std::move(more);
    else
      rows->insert(rows->end(), more.begin(), more.end());
  };
  switch (visibility_) {
  case row_visibility::current:
    append(client, during);
    break;
  case row_visibility::cumulative:
    for (std::uint32_t t = 0; t <= during.value; ++t)
      append(client, {t});
    break;
  case row_visibility::centralized:
  case row_visibility::offline:
    for (std::uint32_t t = 0; client.value == 0 && t <= last_shown(during); ++t) {
      const auto first = std::ssize(*rows);
      for (std::uint32_t c = 0; c < population_->size(); ++c)
        append({c}, {t});
      std::sort(rows->begin() + first, rows->end());
    }
    break;
  }
  sample_view shown{.source = non_owning(tasks_->train), .rows = std::move(rows)};
  if (visibility_ == row_visibility::current && shown.size() > 0)
    if (auto marks = split_->marks(client, during); !marks.empty())
      shown.marks = std::make_shared<const std::vector<std::int32_t>>(std::move(marks));
  return shown;
}

} // namespace mneme
