#include "runtime/population/client_rows.hpp"
#include "runtime/base/lent.hpp"
#include <algorithm>
namespace mneme {

client_rows::client_rows(std::shared_ptr<const curriculum> tasks, std::shared_ptr<const partition> split,
                         std::shared_ptr<const population> people, rows_shown shown)
    : tasks_(std::move(tasks)), split_(std::move(split)), people_(std::move(people)), shown_(shown) {
  if (central())
    for (std::uint32_t t = 0; t < tasks_->tasks.size(); ++t)
      central_sizes_.push_back(everybodys({t}));
}

bool client_rows::holds(client_id who, task_id of) const { return people_->member(who, of) == membership::active; }

std::uint32_t client_rows::last_shown(task_id during) const {
  return shown_ == rows_shown::offline ? static_cast<std::uint32_t>(tasks_->tasks.size()) - 1 : during.value;
}

std::int64_t client_rows::everybodys(task_id of) const {
  std::int64_t sum = 0;
  for (std::uint32_t c = 0; c < people_->size(); ++c)
    sum += holds({c}, of) ? split_->size({c}, of) : 0;
  return sum;
}

std::int64_t client_rows::size(client_id who, task_id during) const {
  std::int64_t sum = 0;
  switch (shown_) {
  case rows_shown::current:
    return holds(who, during) ? split_->size(who, during) : 0;
  case rows_shown::cumulative:
    for (std::uint32_t t = 0; t <= during.value; ++t)
      sum += holds(who, {t}) ? split_->size(who, {t}) : 0;
    return sum;
  case rows_shown::centralised:
  case rows_shown::offline:
    for (std::uint32_t t = 0; who.value == 0 && t <= last_shown(during); ++t)
      sum += central_sizes_[t];
    return sum;
  }
  return 0;
}

std::vector<std::int64_t> client_rows::held(client_id who, task_id of) const {
  return holds(who, of) ? split_->rows(who, of) : std::vector<std::int64_t>{};
}

sample_view client_rows::view(client_id who, task_id during) const {
  auto rows = std::make_shared<std::vector<std::int64_t>>();
  auto append = [&](client_id whose, task_id of) {
    if (!holds(whose, of))
      return;
    auto more = split_->rows(whose, of);
    if (rows->empty())
      *rows = std::move(more);
    else
      rows->insert(rows->end(), more.begin(), more.end());
  };
  switch (shown_) {
  case rows_shown::current:
    append(who, during);
    break;
  case rows_shown::cumulative:
    for (std::uint32_t t = 0; t <= during.value; ++t)
      append(who, {t});
    break;
  case rows_shown::centralised:
  case rows_shown::offline:
    for (std::uint32_t t = 0; who.value == 0 && t <= last_shown(during); ++t) {
      const auto first = std::ssize(*rows);
      for (std::uint32_t c = 0; c < people_->size(); ++c)
        append({c}, {t});
      std::sort(rows->begin() + first, rows->end());
    }
    break;
  }
  sample_view shown{.source = lent(tasks_->train), .rows = std::move(rows)};
  if (shown_ == rows_shown::current && shown.size() > 0)
    if (auto marks = split_->marks(who, during); !marks.empty())
      shown.marks = std::make_shared<const std::vector<std::int32_t>>(std::move(marks));
  return shown;
}

} // namespace mneme
