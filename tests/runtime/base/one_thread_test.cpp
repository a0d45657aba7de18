#include "runtime/base/one_thread.hpp"
#include <catch2/catch_test_macros.hpp>
#include <thread>
using namespace mneme;

TEST_CASE("compute_on_one_thread() limits only the calling thread", "[one_thread]") {
  int used = 0;
  std::jthread([&used] {
    compute_on_one_thread();
    used = threads_of_an_operation();
  }).join();
  CHECK(used == 1);
}
