#include "runtime/storage/client_memory_store.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "runtime/base/rng.hpp"
#include <catch2/catch_test_macros.hpp>
#include <map>
using namespace mneme;

namespace {

memory_ref memory_of(std::uint64_t number, std::int64_t floats) {
  auto made = std::make_shared<tensor_map>();
  made->put("prototypes", at::arange(floats, at::kFloat).add_(static_cast<double>(number)).view({floats / 2, 2}));
  made->put("counts", at::full({3}, static_cast<std::int64_t>(number), at::kLong));
  made->put("seen", at::ones({}, at::kBool));
  return made;
}

bool equal(const memory_ref& a, const memory_ref& b) {
  if (!a || !b || a->size() != b->size())
    return !a && !b;
  for (const auto& [name, value] : *a)
    if (b->at(name).scalar_type() != value.scalar_type() || !at::equal(b->at(name), value))
      return false;
  return true;
}

} // namespace

TEST_CASE("a store with a memory limit returns the same memories as one without") {
  client_memory_store memories, little(4096);
  rng_stream draw({.seed = 5, .purpose = first_method_purpose});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const client_id client{static_cast<std::uint32_t>(draw.below(300))};
    if (draw.below(10) == 0) {
      memories.erase(client);
      little.erase(client);
    } else {
      const auto memory = memory_of(i, 20 + 2 * static_cast<std::int64_t>(draw.below(30)));
      memories.put(client, memory);
      little.put(client, memory);
    }
    CHECK(little.held_bytes() <= 4096);
    REQUIRE(little.size() == memories.size());
    const client_id looked_up{static_cast<std::uint32_t>(draw.below(300))};
    REQUIRE(equal(memories.find(looked_up), little.find(looked_up)));
  }
  CHECK(memories.in_file() == 0);
  CHECK(little.in_file() > 200);
  std::vector<std::pair<client_id, memory_ref>> in_order;
  memories.each([&](client_id client, const memory_ref& memory) { in_order.emplace_back(client, memory); });
  std::size_t at = 0;
  little.each([&](client_id client, const memory_ref& memory) {
    REQUIRE(client == in_order.at(at).first);
    CHECK(equal(memory, in_order.at(at++).second));
  });
  CHECK(at == memories.size());
}

TEST_CASE("a memory larger than the limit is written to the file at once, and null removes it") {
  client_memory_store book(16);
  book.put({4'000'000}, memory_of(1, 100));
  CHECK(book.in_file() == 1);
  CHECK(book.held_bytes() == 0);
  CHECK(equal(book.find({4'000'000}), memory_of(1, 100)));
  book.put({4'000'000}, nullptr);
  CHECK(book.size() == 0);
  CHECK(book.find({4'000'000}) == nullptr);
}
