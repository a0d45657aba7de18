#include "runtime/base/virtual_clock.hpp"
#include <catch2/catch_test_macros.hpp>
#include <string>
using namespace mneme;
using namespace std::chrono_literals;

TEST_CASE("equal times leave in push order, and a deadline after all arrivals at its time") {
  event_queue<char> queue;
  const virtual_time at{5ns};
  queue.push(at, 'd', precedence::deadline);
  queue.push(at, 'a');
  queue.push(virtual_time{7ns}, 'z');
  queue.push(virtual_time{3ns}, 'f');
  queue.push(at, 'b');
  std::string order;
  while (!queue.empty())
    order += queue.pop();
  CHECK(order == "fabdz");
  CHECK(queue.now() == virtual_time{7ns});
}

TEST_CASE("a duration is rounded up to 1 ns") {
  CHECK(rounded_up(0.0) == 0ns);
  CHECK(rounded_up(1.5e-9) == 2ns);
  CHECK(rounded_up(2.0) == 2s);
}
