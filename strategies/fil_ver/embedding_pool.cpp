#include "strategies/fil_ver/embedding_pool.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/empty.h>
#include <algorithm>
namespace mneme {
namespace {

template <class Index>
std::size_t at_index(Index i) {
  return static_cast<std::size_t>(i);
}

} // namespace

void embedding_pool::add(task_id task, const embedding_rows& rows) {
  if (rows.size() == 0)
    return;
  if (width_ == 0)
    width_ = rows.features.size(1);
  MNEME_CHECK(rows.features.size(1) == width_ && rows.features.is_contiguous(), rows.features.sizes(), width_);
  auto& to = tasks_[task];
  const auto& labels = limits_.labels.at(task.value);
  to.slots.resize(at_index(labels.size()));
  to.rows_met.resize(at_index(labels.size()));
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    const auto label = rows.labels.const_data_ptr<std::int32_t>()[i];
    const auto place = slot_for(task, to, label);
    if (place < 0)
      continue;
    if (place == std::ssize(to.labels)) {
      to.slots[at_index(label - labels.low)].push_back(at_index(place));
      to.labels.push_back(label);
      to.features.resize(to.features.size() + at_index(width_));
    }
    std::copy_n(rows.features.const_data_ptr<float>() + i * width_, width_, to.features.data() + place * width_);
  }
}

std::int64_t embedding_pool::slot_for(task_id task, part& to, std::int32_t label) const {
  const auto& labels = limits_.labels.at(task.value);
  MNEME_CHECK(labels.low <= label && label < labels.high, label, labels.low, labels.high);
  const auto& slots = to.slots[at_index(label - labels.low)];
  const auto before = to.rows_met[at_index(label - labels.low)]++;
  if (limits_.kind == pool_kind::everything || std::ssize(slots) < label_rows_max(task, label))
    return std::ssize(to.labels);
  auto key = limits_.stream;
  key.task = task;
  key.visit = static_cast<std::uint32_t>(label);
  key.index = before;
  const auto chosen = rng_stream(key).below(before + 1);
  return chosen < slots.size() ? static_cast<std::int64_t>(slots[at_index(chosen)]) : -1;
}

std::int64_t embedding_pool::label_rows_max(task_id task, std::int32_t label) const {
  const auto& labels = limits_.labels.at(task.value);
  return limits_.rows_max / labels.size() + (label - labels.low < limits_.rows_max % labels.size() ? 1 : 0);
}

std::int64_t embedding_pool::size() const {
  std::int64_t sum = 0;
  for (const auto& [task, part] : tasks_)
    sum += std::ssize(part.labels);
  return sum;
}

std::int64_t embedding_pool::size(task_id task) const {
  const auto place = tasks_.find(task);
  return place == tasks_.end() ? 0 : std::ssize(place->second.labels);
}

std::int64_t embedding_pool::size(task_id task, std::int32_t label) const {
  const auto place = tasks_.find(task);
  return place == tasks_.end()
             ? 0
             : std::ssize(place->second.slots.at(at_index(label - limits_.labels.at(task.value).low)));
}

embedding_rows embedding_pool::drawn(std::int64_t batches, std::int64_t batch_rows, pool_balance balance,
                                     const rng_key& key) const {
  MNEME_CHECK(!empty(), batches, batch_rows);
  std::vector<const part*> parts;
  for (const auto& [task, part] : tasks_)
    parts.push_back(&part);
  const auto count = batches * batch_rows;
  embedding_rows rows{.features = at::empty({count, width_}, at::kFloat), .labels = at::empty({count}, at::kInt)};
  auto* values = rows.features.mutable_data_ptr<float>();
  rng_stream draw(key);
  const auto rows_of_pool = static_cast<std::uint64_t>(size());
  for (std::int64_t i = 0; i < count; ++i, values += width_) {
    auto chosen_part = at_index(i) % parts.size(); // tasks take turns, also across batches
    std::uint64_t row = 0;
    if (balance == pool_balance::task_balanced)
      row = draw.below(parts[chosen_part]->labels.size());
    else
      for (chosen_part = 0, row = draw.below(rows_of_pool); row >= parts[chosen_part]->labels.size(); ++chosen_part)
        row -= parts[chosen_part]->labels.size();
    std::copy_n(parts[chosen_part]->features.data() + row * at_index(width_), width_, values);
    rows.labels.mutable_data_ptr<std::int32_t>()[i] = parts[chosen_part]->labels[row];
  }
  return rows;
}

} // namespace mneme
