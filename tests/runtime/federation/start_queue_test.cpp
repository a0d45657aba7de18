#include "runtime/base/tensor_map.hpp"
#include "runtime/federation/start_queue.hpp"
#include <ATen/ops/zeros.h>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

assignment round_of(std::uint64_t id, std::uint32_t client, const broadcast_ref& in) {
  assignment made;
  made.id = {id};
  made.client = {client};
  made.in = in;
  return made;
}

std::vector<std::uint64_t> ids(const start_rounds& wave) {
  std::vector<std::uint64_t> numbers;
  for (const auto& assignment : wave.assignments)
    numbers.push_back(assignment.id.value);
  return numbers;
}

std::vector<std::int64_t> ready(const start_rounds& wave) {
  std::vector<std::int64_t> values;
  for (const auto at : wave.ready)
    values.push_back(at.time_since_epoch().count());
  return values;
}

} // namespace

TEST_CASE("rounds go to the shards of their clients in order, with the times at which they are ready") {
  const auto in = std::make_shared<const broadcast>(broadcast{.weights = weights_only(at::zeros({5}))});
  start_queue waiting(2);
  CHECK(waiting.size() == 0);
  for (std::uint32_t i = 0; i < 6; ++i)
    waiting.add(round_of(10 + i, i, in), virtual_time{virtual_duration{i}});
  CHECK(waiting.size() == 6);
  CHECK(waiting.weight_bytes() == 6 * 20);
  waiting.erase({{1}, {11}, {12}, {15}}); // 1 is not in the queue
  CHECK(waiting.size() == 3);
  CHECK(waiting.weight_bytes() == 3 * 20);
  const auto even = waiting.take({0}), odd = waiting.take({1});
  CHECK(ids(even) == std::vector<std::uint64_t>{10, 14});
  CHECK(ready(even) == std::vector<std::int64_t>{0, 4});
  CHECK(ids(odd) == std::vector<std::uint64_t>{13});
  CHECK(ready(odd) == std::vector<std::int64_t>{3});
  CHECK(waiting.size() == 0);
  CHECK(waiting.take({0}).assignments.empty());
}
