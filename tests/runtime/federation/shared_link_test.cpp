#include "runtime/federation/shared_link.hpp"
#include <catch2/catch_test_macros.hpp>
#include <limits>
using namespace mneme;
using namespace std::chrono_literals;

namespace {

virtual_time when(virtual_duration since) { return virtual_time(since); }

constexpr double unlimited = std::numeric_limits<double>::infinity();

shared_link::active_transfer transfer_of(std::uint64_t id, double bits, double client_mbit = unlimited) {
  return {.owner = {id}, .client = {static_cast<std::uint32_t>(id)}, .bits_left = bits, .client_mbit = client_mbit};
}

std::vector<std::uint64_t> ended(shared_link& link) {
  std::vector<std::uint64_t> ids;
  for (const auto& transfer : link.take_ended())
    ids.push_back(transfer.owner.value);
  return ids;
}

} // namespace

TEST_CASE("overlapping transfers share the link in equal parts") {
  shared_link link(1.0); // 1 Mbit/s
  CHECK(link.next_change() == never);
  link.add(transfer_of(1, 2e6));
  CHECK(link.next_change() == when(2s));
  link.move_to(when(1s));
  link.add(transfer_of(2, 1e6)); // both have 1 Mbit left: 2 s at half the rate
  CHECK(link.next_change() == when(3s));
  link.move_to(when(3s));
  CHECK(ended(link) == std::vector<std::uint64_t>{1, 2});
  CHECK(link.next_change() == never);
}

TEST_CASE("unused bandwidth of a slow link goes to other transfers, and an ended transfer frees its share") {
  shared_link link(10.0);
  link.add(transfer_of(1, 2e6, 1.0));
  link.add(transfer_of(2, 9e6));
  link.add(transfer_of(3, 18e6)); // 1, 4.5 and 4.5 Mbit/s
  CHECK(link.transfers()[1].mbit == 4.5);
  CHECK(link.next_change() == when(2s));
  link.move_to(when(2s));
  CHECK(ended(link) == std::vector<std::uint64_t>{1, 2});
  CHECK(link.transfers()[0].mbit == 10.0); // 9 Mbit are left
  CHECK(link.next_change() == when(2900ms));
  link.erase({3});
  CHECK(link.next_change() == never);
}

TEST_CASE("a transfer over a link that is down waits, and one that never ends has the largest time") {
  shared_link link(1.0);
  auto waiting = transfer_of(1, 1e6, 0.0);
  waiting.client_rate_until = when(7s);
  link.add(waiting);
  CHECK(link.next_change() == when(7s));
  shared_link dead(1.0);
  dead.add(transfer_of(1, 1e6, 0.0));
  CHECK(dead.next_change() == end_of_runs);
}

TEST_CASE("a link restored between two changes continues unchanged") {
  shared_link link(3.0);
  link.add(transfer_of(1, 1e6, 0.7));
  link.add(transfer_of(2, 5e6));
  link.move_to(when(333'333'333ns));
  archive saved;
  link.persist(saved);
  const auto bytes = saved.contents();
  archive from(bytes, 0, bytes->size());
  shared_link again(3.0);
  again.persist(from);
  link.add(transfer_of(3, 1e6));
  again.add(transfer_of(3, 1e6));
  for (const auto* side : {&link, &again})
    CHECK(side->next_change() == link.next_change());
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(link.transfers()[i].ends_at == again.transfers()[i].ends_at);
}
