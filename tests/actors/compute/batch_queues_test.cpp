#include "actors/compute/batch_queues.hpp"
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <thread>
using namespace mneme;

namespace {

constexpr double long_job = std::numeric_limits<double>::infinity();

std::vector<ready_batch> batches(std::uint64_t first, std::uint64_t count, double multiplications = 0.0) {
  std::vector<ready_batch> made;
  for (auto id = first; id < first + count; ++id)
    made.push_back({.ids = {{{id}, 0, 0}}, .multiplications = multiplications});
  return made;
}

/// Assignment of the batch's only job; 0 if there is no batch.
std::uint64_t number(const std::optional<ready_batch>& taken) {
  return taken ? taken->ids.front().assignment.value : 0;
}

std::vector<std::uint32_t> numbers(const std::vector<worker_id>& workers) {
  std::vector<std::uint32_t> made;
  for (const auto worker : workers)
    made.push_back(worker.value);
  return made;
}

using workers = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("waiting() counts batches of shards together and of each party") {
  batch_queues queues(3, 2, 2);
  (void)queues.put(0, batches(10, 2));
  (void)queues.put(2, batches(20, 1));
  (void)queues.put(queues.queue_of(party_id::server), batches(30, 4));
  CHECK((queues.waiting() == batch_queues::lengths{.clients = 3, .parties = {4, 0}}));
  CHECK(number(queues.take({0})) != 0);
  CHECK(queues.waiting().clients == 2);
}

TEST_CASE("take() serves a worker's own shards in order, then the longest other queue") {
  batch_queues queues(3, 3, 3);
  CHECK(number(queues.take({0})) == 0);
  (void)queues.put(0, batches(10, 2));
  (void)queues.put(2, batches(20, 2));
  (void)queues.put(2, batches(30, 1));
  CHECK(number(queues.take({1})) == 20);
  CHECK(number(queues.take({0})) == 10);
  const auto third = queues.take({2});
  CHECK(number(third) == 21);
  CHECK(third->queue == 2);
  CHECK(number(queues.take({2})) == 30);
  CHECK(number(queues.take({2})) == 11);
  CHECK(number(queues.take({2})) == 0);
}

TEST_CASE("take() alternates between the shards of a worker") {
  batch_queues queues(3, 2, 2); // the first worker hosts shards 0 and 2
  (void)queues.put(0, batches(10, 2));
  (void)queues.put(2, batches(20, 2));
  (void)queues.put(1, batches(30, 5));
  std::vector<std::uint64_t> taken;
  for (int i = 0; i < 5; ++i)
    taken.push_back(number(queues.take({0})));
  CHECK(taken == std::vector<std::uint64_t>{10, 20, 11, 21, 30});
}

TEST_CASE("take() gives the server's jobs to a worker without batches of its own") {
  batch_queues queues(2, 2, 2);
  (void)queues.put(queues.queue_of(party_id::server), batches(10, 2));
  (void)queues.put(1, batches(20, 1));
  CHECK(number(queues.take({1})) == 20);
  CHECK(number(queues.take({1})) == 10);
  CHECK(queues.take({0})->queue == queues.queue_of(party_id::server));
}

TEST_CASE("put() wakes only idle workers, and each only once") {
  batch_queues queues(2, 4, 2);
  CHECK(numbers(queues.put(1, batches(10, 1, long_job))) == workers{1}); // idle, and hosts shard 1
  CHECK(queues.put(1, batches(20, 1, long_job)).empty());                // it is awake already
  CHECK(number(queues.take({1})) == 10);
  CHECK(number(queues.take({1})) == 20);
  CHECK(queues.put(1, batches(30, 1)).empty()); // still awake: it has not found its queue empty
  CHECK(number(queues.take({1})) == 30);
  CHECK_FALSE(queues.take({1}));
  CHECK(numbers(queues.put(1, batches(40, 1))) == workers{1});
}

TEST_CASE("put() wakes as many workers as the batches keep busy, the first worker last") {
  CHECK(numbers(batch_queues(2, 4, 2).put(1, batches(10, 3, long_job))) == workers{1, 3, 2});
  CHECK(numbers(batch_queues(2, 4, 2).put(1, batches(10, 9, long_job))) == workers{1, 3, 2, 0});
  CHECK(numbers(batch_queues(2, 4, 2).put(1, batches(10, 9, 1.0))) == workers{1}); // done before others wake
  batch_queues queues(2, 4, 2);
  CHECK(numbers(queues.put(queues.queue_of(party_id::server), batches(10, 1, long_job))) == workers{0});
  CHECK(numbers(queues.put(queues.queue_of(party_id::server), batches(20, 3, long_job))) == workers{3, 2});
}

TEST_CASE("concurrent workers run every batch exactly once") {
  constexpr std::uint64_t count = 4000;
  batch_queues queues(2, 2, 2);
  std::vector<std::atomic<int>> times(count);
  const auto run = [&](worker_id mine) {
    for (std::uint64_t part = 0; part < count / 2; part += 100) {
      (void)queues.put(mine.value, batches(mine.value * count / 2 + part, 100));
      for (int taken = 0; taken < 101; ++taken)
        if (const auto next = queues.take(mine))
          ++times.at(number(next));
    }
    while (const auto next = queues.take(mine))
      ++times.at(number(next));
  };
  { const std::jthread thread(run, worker_id{0}), two(run, worker_id{1}); }
  CHECK(std::all_of(times.begin(), times.end(), [](const auto& n) { return n == 1; }));
}
