#include "runtime/kernels/cuda/cross_entropy_rows.hpp"
#include "runtime/method/training.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/grids.hpp"
#include "tests/support/tensors.hpp"
#include <limits>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("the threads of a grid together compute a step's cross-entropy", "[kernels]") {
  const std::int64_t models = 3, rows = 7;
  for (const std::int64_t classes : {1, 2, 10, 103}) {
    auto logits = drawn_floats({models, rows, classes}, 4) * 20;
    logits.select(1, 4).fill_(std::numeric_limits<float>::quiet_NaN()); // padded rows may have any values
    auto labels = at::arange(models * rows, at::kLong).remainder(classes).view({models, rows});
    auto weight = at::full({models, rows}, 1.0F / 6.0F);
    labels.select(1, 4).fill_(-1);
    weight.select(1, 4).zero_();
    const auto twin = (*cross_entropy_objective())({logits, logits, labels, weight, {}});
    auto d_logits = at::full_like(logits, 7.0F);
    auto losses = at::empty({models, rows}, at::kDouble);
    const kernels::cuda::cross_entropy_group group{.logits = logits.const_data_ptr<float>(),
                                                   .labels = labels.const_data_ptr<std::int64_t>(),
                                                   .weight = weight.const_data_ptr<float>(),
                                                   .d_logits = d_logits.mutable_data_ptr<float>(),
                                                   .losses = losses.mutable_data_ptr<double>(),
                                                   .rows = models * rows,
                                                   .classes = classes};
    run_on_host(group, 4);
    CHECK(largest_difference(d_logits, twin.d_logits) < 1e-6);
    CHECK(at::allclose(losses.sum(1), twin.values, 1e-6, 1e-6));
    run_on_host(group); // another grid gives the same result
    CHECK(at::allclose(losses.sum(1), twin.values, 1e-6, 1e-6));
  }
}
