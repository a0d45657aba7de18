#include "runtime/base/intra_op_threads.hpp"
#include <catch2/catch_test_macros.hpp>
#include <thread>
using namespace mneme;

TEST_CASE("compute_on_one_thread() limits only the calling thread", "[one_thread]") {
  int used = 0;
  std::jthread([&used] {
    disable_intra_op_threads();
    used = intra_op_threads();
  }).join();
  CHECK(used == 1);
}
