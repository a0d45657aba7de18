#include "runtime/training/folding.hpp"
#include "runtime/training/folding_calls.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/device_cases.hpp"
#include "tests/support/learning.hpp"
using namespace mneme;
using namespace mneme::test;

TEST_CASE("uploads are folded in float64, and the sum restarts at zero", "[folding]") {
  auto sum = at::zeros({2}, at::kDouble);
  fold_uploads(sum,
               std::vector<weighted_upload>{{at::tensor({1.0F, 16777216.0F}), 3.0}, {at::tensor({2.0F, 1.0F}), 1.0}});
  CHECK(sum[1].item<double>() == 3.0 * 16777216.0 + 1.0); // a float would have lost the 1
  CHECK(same_bits(take_mean(sum, 4.0), at::tensor({1.25F, 12582912.25F})));
  CHECK(at::equal(sum, at::zeros({2}, at::kDouble)));
}

TEST_CASE("a step from a base is rounded once, from float64, and the sum restarts at zero", "[folding]") {
  auto sum = at::tensor({3.0, -16777216.0, 1.0 / 3.0}, at::kDouble);
  const auto base = at::tensor({1.0F, 16777217.0F * 2, 0.7F});
  const auto as_tensors = sum.mul(0.1).add(base).to(at::kFloat);
  CHECK(same_bits(take_moved(sum, base, 0.1), as_tensors));
  CHECK(at::equal(sum, at::zeros({3}, at::kDouble)));
}

TEST_CASE("the threads of a grid together fold uploads as one loop does", "[folding]") {
  for (const std::int64_t size : {1, 4, 7, 1000, 1003})
    for (const std::int64_t offset : {0, 1}) { // unaligned data are read one by one
      auto sum = at::zeros({size + offset}, at::kDouble).narrow(0, offset, size), twin = at::zeros({size}, at::kDouble);
      for (std::size_t count = 1; count <= 8; ++count) {
        const auto uploads = drawn_uploads(count, size, offset);
        const auto call = fold_call(sum, uploads);
        CHECK(call.quads == (offset == 0));
        run_on_host(call, count == 1 ? 3 : 256);
        fold_uploads(twin, uploads);
      }
      // Products of a float and a small integer are exact, so all summation orders give the same bits.
      CHECK(at::equal(sum, twin));
      auto mean = at::empty({size});
      run_on_host(mean_call(sum, mean, 33.0), 5);
      CHECK(largest_difference(mean, take_mean(twin, 33.0)) < 1e-7);
      CHECK(at::equal(sum, twin)); // both are zeros
    }
}
