#include "runtime/training/optimizers.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/reference_optimizer.hpp"
#include "tests/support/tensors.hpp"
using namespace mneme;
using namespace mneme::test;

TEST_CASE("two steps of SGD with momentum and weight decay equal values worked out by hand", "[training]") {
  // Step 1: g = 1 + 0.5 * 2 = 2, v = 2, w = 2 - 0.1 * 2 = 1.8. Step 2: g = 1 + 0.5 * 1.8 = 1.9, v = 0.9 * 2 + 1.9 =
  // 3.7, w = 1.8 - 0.37 = 1.43. Element 0 is not trained.
  const auto check = [](auto sgd, const at::Tensor& weights) {
    sgd.step({0, 1}, std::vector<std::int64_t>{1});
    CHECK(largest_difference(weights, floats({2, 1.8F})) < 1e-6);
    sgd.step({0, 1}, std::vector<std::int64_t>{2});
    CHECK(largest_difference(weights, floats({2, 1.43F})) < 1e-6);
  };
  const training_options options{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.5};
  const auto gradients = floats({1, 1}).unsqueeze(0);
  const auto ours = floats({2, 2}).unsqueeze(0), expected = ours.clone();
  check(optimizer(options, {{1, 1}}, ours, gradients), ours);
  check(reference_optimizer(options, {{1, 1}}, expected, gradients), expected);
}

TEST_CASE("one step of Adam changes weights by the learning rate, and AdamW decays first", "[training]") {
  // At step 1 both moments are bias-corrected to g and g^2: the step is lr * g / (|g| + 1e-8).
  auto weights = floats({1, 1}).unsqueeze(0), gradients = floats({0.5F, -4}).unsqueeze(0);
  optimizer adam({.optimizer = optimizer_kind::adam, .learning_rate = 0.1}, {{0, 2}}, weights, gradients);
  adam.step({0, 1}, std::vector<std::int64_t>{1});
  CHECK(largest_difference(weights, floats({0.9F, 1.1F})) < 1e-6);
  auto shrunk = floats({1, 1}).unsqueeze(0);
  optimizer adamw({.optimizer = optimizer_kind::adamw, .learning_rate = 0.1, .weight_decay = 0.2}, {{0, 2}}, shrunk,
                  gradients);
  adamw.step({0, 1}, std::vector<std::int64_t>{1});
  CHECK(largest_difference(shrunk, floats({0.98F - 0.1F, 0.98F + 0.1F})) < 1e-6);
}

TEST_CASE("clipping scales a gradient to the maximum norm and leaves smaller ones unchanged", "[training]") {
  // The norm is 5 over the trained elements; the 1,000 is not trained. Model 1 has norm 0.5.
  auto weights = at::zeros({2, 3});
  auto gradients = floats({3, 1000, 4, 0.3F, 1000, 0.4F}).view({2, 3});
  optimizer sgd({.learning_rate = 1.0, .clip_norm = 1.0}, {{0, 1}, {2, 1}}, weights, gradients);
  sgd.step({0, 2}, std::vector<std::int64_t>{1, 1});
  CHECK(largest_difference(weights, floats({-0.6F, 0, -0.8F, -0.3F, 0, -0.4F}).view({2, 3})) < 1e-6);
}

TEST_CASE("optimizer kernels equal ATen's operations over ten steps", "[training]") {
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adam, optimizer_kind::adamw})
    for (const double momentum : {0.0, 0.9}) {
      const training_options options{
          .optimizer = kind, .learning_rate = 0.05, .momentum = momentum, .weight_decay = 0.01, .clip_norm = 3.0};
      auto weights = drawn({4, 101}, 1), expected_weights = weights.clone();
      auto gradients = at::empty({4, 101}), expected_gradients = at::empty({4, 101});
      const std::vector<segment> trained{{0, 37}, {50, 51}};
      optimizer ours(options, trained, weights, gradients);
      reference_optimizer expected(options, trained, expected_weights, expected_gradients);
      for (std::int64_t t = 1; t <= 10; ++t) {
        gradients.copy_(drawn({4, 101}, 10 + static_cast<std::uint64_t>(t)));
        expected_gradients.copy_(gradients);
        ours.step({1, 2}, std::vector<std::int64_t>{t, 2 * t});
        expected.step({1, 2}, std::vector<std::int64_t>{t, 2 * t});
      }
      CHECK(largest_difference(weights, expected_weights) < 1e-5);
      CHECK(same_bits(weights[0], drawn({4, 101}, 1)[0])); // model 0 takes no step
    }
}
