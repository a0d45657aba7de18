#include <ATen/ops/full.h> // before Catch2, whose CHECK must be the last definition

#include "actors/nodes/tensor_caches.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;

namespace {

constexpr std::int64_t kib_of_floats = 256;

at::Tensor kib(double value, std::int64_t count = 1) { return at::full({count * kib_of_floats}, value); }

} // namespace

TEST_CASE("a large tensor is sent once for all its handles, a small one each time") {
  run_tensor_cache run(1 << 20);
  CHECK_FALSE(run.offer(at::full({10}, 1.0))); // too small for a digest
  const auto value = kib(1.0);
  const auto first = run.offer(value);
  REQUIRE(first);
  CHECK(first->is_new);
  CHECK_FALSE(run.offer(value)->is_new);
  CHECK_FALSE(run.offer(kib(1.0))->is_new);
  CHECK((run.offer(kib(1.0))->name == first->name));
  CHECK(run.offer(kib(2.0))->is_new);
}

TEST_CASE("the run evicts the least recently used tensor but none that the current message uses") {
  run_tensor_cache run(2 * 1024);
  const auto a = kib(1.0), b = kib(2.0), c = kib(3.0);
  CHECK(run.offer(a)->is_new);
  CHECK(run.end_message().empty());
  const auto name_b = run.offer(b)->name;
  CHECK(run.end_message().empty());
  CHECK_FALSE(run.offer(a)->is_new);
  CHECK(run.offer(c)->is_new);
  const auto forgotten = run.end_message();
  REQUIRE(forgotten.size() == 1);
  CHECK((forgotten.front() == name_b));
  CHECK(run.offer(b)->is_new); // sent again after its eviction

  run_tensor_cache tight(1024);
  const auto large = kib(5.0, 4);
  CHECK(tight.offer(large)->is_new);
  CHECK(tight.end_message().empty()); // exceeds the budget, but the message uses it
}

TEST_CASE("evicted tensors stay available until the node has acknowledged the eviction") {
  run_tensor_cache run(1024);
  node_tensor_cache node;
  const auto a = kib(1.0), b = kib(2.0);
  const auto name = run.offer(a)->name;
  node.keep(name, a);
  CHECK(run.end_message().empty()); // message 1
  CHECK(run.offer(b)->is_new);
  const auto forgotten = run.end_message(); // message 2
  REQUIRE(forgotten.size() == 1);
  CHECK_FALSE(node.offer(a)->is_new); // it has not received the eviction
  CHECK(run.find(name).equal(a));
  run.keep(name, a); // not stored, since its eviction is pending
  node.forget(forgotten);
  CHECK(node.bytes() == 0);
  run.acknowledge(2);
  CHECK_THROWS_AS(run.find(name), archive_error);
  CHECK_THROWS_AS(node.find(name), archive_error);
  CHECK(node.offer(a)->is_new);
  run.keep(name, a);
  CHECK_FALSE(run.offer(kib(1.0))->is_new);
}
