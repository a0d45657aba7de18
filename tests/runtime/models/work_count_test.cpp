#include "runtime/models/work_count.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/nets.hpp"
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("dense nets take two operations per weight and row") {
  const auto linear = net_of("linear", {1, 1, 5}, 4);
  const auto single = work_of_pass(*linear, {1, 1, 5}, 1, {0, 4});
  CHECK(single.forward == 2 * 5 * 4);
  CHECK(single.backward == 2 * 5 * 4); // of the weights; inputs need no gradient
  CHECK(work_of_pass(*linear, {1, 1, 5}, 3, {0, 2}).forward == 3 * 2 * 5 * 2);
  CHECK(work_of_pass(*linear, {1, 1, 5}, 1, {}).forward == 0);

  const auto mlp = net_of("mlp", {1, 1, 784}, 10); // 784-200-100-10
  const auto pass = work_of_pass(*mlp, {1, 1, 784}, 2, {0, 10});
  CHECK(pass.forward == 2 * 2.0 * (784 * 200 + 200 * 100 + 100 * 10));
  CHECK(pass.backward == 2 * 2.0 * (784 * 200 + 2 * (200 * 100 + 100 * 10)));
  CHECK(pass.forward_by_shape.at({2, 784, 200}) == 2 * 2.0 * 784 * 200);
}

TEST_CASE("convolutions take two operations per filter weight and pixel") {
  const auto lenet = net_of("lenet", {1, 28, 28}, 10);
  const double first = 2.0 * 28 * 28 * 25 * 6, second = 2.0 * 10 * 10 * 150 * 16,
               dense = 2.0 * (400 * 120 + 120 * 84 + 84 * 10);
  const auto pass = work_of_pass(*lenet, {1, 28, 28}, 1, {0, 10});
  CHECK(pass.forward == first + second + dense);
  CHECK(pass.backward == first + 2 * (second + dense)); // pixels need no gradient
}
