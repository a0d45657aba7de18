#include "actors/compute/batch_lines.hpp"
#include <algorithm>
namespace mneme {

void batch_lines::put(shard_id whose, std::vector<ready_batch> all) {
  const std::lock_guard hold(mutex_);
  auto& line = lines_.at(whose.value);
  std::move(all.begin(), all.end(), std::back_inserter(line));
}

std::optional<ready_batch> batch_lines::own(shard_id whose) {
  const std::lock_guard hold(mutex_);
  auto& line = lines_.at(whose.value);
  if (line.empty())
    return std::nullopt;
  auto next = std::move(line.front());
  line.pop_front();
  return next;
}

std::optional<ready_batch> batch_lines::of_others() {
  const std::lock_guard hold(mutex_);
  auto& longest =
      *std::max_element(lines_.begin(), lines_.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (longest.empty())
    return std::nullopt;
  auto next = std::move(longest.front());
  longest.pop_front();
  return next;
}

} // namespace mneme
