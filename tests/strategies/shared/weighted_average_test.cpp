#include "runtime/base/archive.hpp"
#include "strategies/shared/averaging.hpp"
#include "tests/support/tensors.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;

TEST_CASE("a weighted average sums in float64 in the order of its values, for any number of waiting ones") {
  at::manual_seed(1);
  for (const int count : {1, 3, 4, 5, 8, 11}) {
    weighted_average mean;
    auto sum = at::zeros({37}, at::kDouble);
    double weight = 0.0;
    CHECK(mean.empty());
    for (int k = 0; k < count; ++k) {
      const auto value = at::randn({37});
      const double rows = 1.0 + 7.0 * k;
      mean.add(value, rows);
      CHECK_FALSE(mean.empty());
      sum = sum + rows * value.to(at::kDouble);
      weight += rows;
    }
    CHECK(at::equal(mean.take(), (sum / weight).to(at::kFloat)));
    CHECK(mean.empty());
  }
}

TEST_CASE("the average of equal models is that model, and of a model and its negative zero, in any order") {
  // Running statistics are in the same tensor as weights and are averaged in the same way.
  const auto model = drawn({50}, 1), other = drawn({50}, 2), third = drawn({50}, 3);
  const auto average_of = [](const std::vector<at::Tensor>& models) {
    weighted_average mean;
    for (const auto& each : models)
      mean.add(each, 1.0);
    return mean.take();
  };
  CHECK(same_bits(average_of({model, model, model}), model));
  CHECK(average_of({model, -model}).abs().max().item<float>() == 0.0F);
  const auto some = average_of({model, other, third});
  CHECK(largest_difference(some, average_of({third, model, other})) < 1e-7);
  CHECK(largest_difference(some, (model + other + third) / 3) < 1e-6);
}

TEST_CASE("a weighted average restarts at zero after it was taken") {
  weighted_average mean;
  mean.add(at::full({2}, 5.0F), 2.0);
  (void)mean.take();
  mean.add(at::full({2}, 3.0F), 1.0);
  mean.add(at::full({2}, 6.0F), 2.0);
  CHECK(at::equal(mean.take(), at::full({2}, 5.0F)));
}

TEST_CASE("an upload that cannot be averaged is refused with a reason") {
  weighted_average mean;
  mean.add(at::ones({4}), 1.0);
  const auto error_text = [&](const at::Tensor& value, double weight) -> std::string {
    try {
      mean.add(value, weight);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return {};
  };
  CHECK(error_text(at::ones({3}), 1.0) == "an upload of 3 numbers cannot be averaged with uploads of 4");
  CHECK(error_text(at::ones({4}, at::kDouble), 1.0) ==
        "an upload of contiguous numbers of type Double cannot be averaged; expected float32");
  CHECK(error_text(at::ones({4, 2}).select(1, 0), 1.0) ==
        "an upload of scattered numbers of type Float cannot be averaged; expected float32");
  CHECK(error_text(at::ones({4}), 0.0) == "an upload of weight 0 cannot be averaged; expected one above 0");
  CHECK(error_text(at::ones({4}), std::nan("")) == "an upload of weight nan cannot be averaged; expected one above 0");
  CHECK(at::equal(mean.take(), at::ones({4})));
}

TEST_CASE("a saved average with inconsistent parts is refused") {
  const auto refused = [](at::Tensor sum, double weight) {
    archive saved;
    saved(sum)(weight);
    const auto bytes = saved.contents();
    archive loading(bytes, 0, bytes->size());
    weighted_average mean;
    try {
      mean.persist(loading);
    } catch (const archive_error&) {
      return true;
    }
    return false;
  };
  CHECK_FALSE(refused(at::ones({3}, at::kDouble), 2.0));
  CHECK_FALSE(refused(at::Tensor(), 0.0));
  CHECK(refused(at::Tensor(), 6.3e-321));
  CHECK(refused(at::ones({3}, at::kFloat), 2.0));
  CHECK(refused(at::ones({3, 1}, at::kDouble), 2.0));
  CHECK(refused(at::ones({3}, at::kDouble), 0.0));
  CHECK(refused(at::ones({3}, at::kDouble), -1.0));
}
