#include "actors/compute/batch_queues.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/tuning.hpp"
#include <algorithm>
namespace mneme {

batch_queues::batch_queues(std::size_t shards, std::size_t workers, std::size_t hosts)
    : hosts_(hosts), shards_(shards), queues_(shards + parties.size()), waits_(workers, true) {
  MNEME_CHECK(hosts_ > 0 && hosts_ <= workers, hosts_, workers);
}

worker_id batch_queues::host_of(std::size_t line) const noexcept {
  return {static_cast<std::uint32_t>(line >= shards_ ? 0 : line % hosts_)};
}

std::vector<worker_id> batch_queues::put(std::size_t line, std::vector<ready_batch> batches) {
  std::vector<worker_id> told;
  if (batches.empty())
    return told;
  double multiplications = 0.0;
  for (const auto& batch : batches)
    multiplications += batch.multiplications;
  const auto others_max =
      std::min(static_cast<double>(batches.size() - 1), multiplications / tuning::wake_multiplications_min);

  const std::lock_guard hold(mutex_);
  for (auto& batch : batches) {
    batch.queue = line;
    queues_.at(line).push_back(std::move(batch));
  }
  auto tell = [&](worker_id worker) {
    waits_[worker.value] = false;
    told.push_back(worker);
  };
  if (const auto host = host_of(line); waits_[host.value])
    tell(host);
  double others = 0.0;
  for (auto w = static_cast<std::uint32_t>(waits_.size()); w-- > 0 && others + 1.0 <= others_max;)
    if (waits_[w]) {
      tell({w});
      ++others;
    }
  return told;
}

std::optional<ready_batch> batch_queues::take(worker_id worker) {
  const std::lock_guard hold(mutex_);
  auto* line = longest(worker);
  if (!line)
    line = longest(std::nullopt);
  if (!line) {
    waits_.at(worker.value) = true;
    return std::nullopt;
  }
  auto next = std::move(line->front());
  line->pop_front();
  return next;
}

batch_queues::lengths batch_queues::waiting() const {
  const std::lock_guard hold(mutex_);
  lengths waiting;
  for (std::size_t line = 0; line < queues_.size(); ++line)
    (line < shards_ ? waiting.clients : waiting.parties[line - shards_]) += queues_[line].size();
  return waiting;
}

batch_queues::batch_queue* batch_queues::longest(std::optional<worker_id> host) {
  batch_queue* queue = nullptr;
  for (std::size_t line = 0; line < queues_.size(); ++line) {
    const bool counts = !host || (line < shards_ && host_of(line) == *host);
    if (counts && queues_[line].size() > (queue ? queue->size() : 0))
      queue = &queues_[line];
  }
  return queue;
}

} // namespace mneme
