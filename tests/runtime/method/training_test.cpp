#include "runtime/method/training.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/reference_cross_entropy.hpp"
#include "tests/support/tensors.hpp"
#include <catch2/catch_approx.hpp>
#include <cmath>
#include <limits>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

TEST_CASE("a cosine schedule falls from the learning rate to nearly 0 within a task", "[training]") {
  training_section section{.learning_rate = 0.8, .schedule = schedule_kind::cosine};
  const auto rate = [&](std::int64_t round) {
    return options_for_round(section, trainable_part::all, {0, 2}, round, 4).learning_rate;
  };
  CHECK(rate(0) == Approx(0.8));
  CHECK(rate(1) == Approx(0.8 * (1 + std::sqrt(0.5)) / 2));
  CHECK(rate(2) == Approx(0.4));
  CHECK(rate(3) == Approx(0.8 * (1 - std::sqrt(0.5)) / 2));
}

// PyTorch 2.11: MultiStepLR(SGD([p], lr=1.0), milestones=[2, 4], gamma=0.1), stepped after each of 6 epochs, uses the
// rates 1, 1, 0.1, 0.1, 0.01, 0.01: a milestone m takes effect after the m-th round.
TEST_CASE("a step schedule multiplies the rate after each milestone's round, like MultiStepLR", "[training]") {
  training_section section{.learning_rate = 1.0, .schedule = schedule_kind::step, .milestones = {2, 4}, .factor = 0.1};
  const auto rate = [&](std::int64_t round) {
    return options_for_round(section, trainable_part::all, {0, 2}, round, 6).learning_rate;
  };
  CHECK(rate(0) == 1.0);
  CHECK(rate(1) == 1.0);
  CHECK(rate(2) == Approx(0.1));
  CHECK(rate(3) == Approx(0.1));
  CHECK(rate(4) == Approx(0.01));
  CHECK(rate(5) == Approx(0.01));
  section.schedule = schedule_kind::constant;
  CHECK(rate(5) == 1.0);
}

TEST_CASE("options_for_round() carries every key of [training]", "[training]") {
  const training_section section{.optimizer = optimizer_kind::adamw,
                                 .epochs = 3,
                                 .batch = 7,
                                 .learning_rate = 0.2,
                                 .momentum = 0.3,
                                 .weight_decay = 0.4,
                                 .clip_norm = 0.5,
                                 .augment = augmentation_kind::crop_flip,
                                 .label_smoothing = 0.6,
                                 .drop_last = true};
  const training_options expected{.optimizer = optimizer_kind::adamw,
                                  .epochs = 3,
                                  .batch_rows = 7,
                                  .learning_rate = 0.2,
                                  .momentum = 0.3,
                                  .weight_decay = 0.4,
                                  .clip_norm = 0.5,
                                  .augment = augmentation_kind::crop_flip,
                                  .label_smoothing = 0.6,
                                  .drop_last = true,
                                  .trained = trainable_part::head,
                                  .classes = {0, 6}};
  CHECK(options_for_round(section, trainable_part::head, {0, 6}, 0, 1) == expected);
}

TEST_CASE("cross-entropy of two rows is their mean, worked out by hand", "[training]") {
  // Row 1: logits ln 3 and 0, label 0: p = 3/4, loss ln 4/3. Row 2: equal logits, label 1: p = 1/2, loss ln 2. Row 3 is
  // padding and is ignored.
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto logits = floats({std::log(3.0F), 0, 5, 5, nan, 1}).view({1, 3, 2});
  const auto labels = at::tensor({std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}}, at::kLong).view({1, 3});
  const auto weight = floats({0.5F, 0.5F, 0}).view({1, 3});
  const auto expected = floats({-0.125F, 0.125F, 0.25F, -0.25F, 0, 0}).view({1, 3, 2});
  const loss_input in{logits, logits, labels, weight, {}};
  for (const auto& out : {(*cross_entropy_objective())(in), reference_cross_entropy(in)}) {
    CHECK(out.values.item<double>() == Approx((std::log(4.0 / 3.0) + std::log(2.0)) / 2).epsilon(1e-6));
    CHECK(largest_difference(out.d_logits, expected) < 1e-7);
    CHECK_FALSE(out.d_features.defined());
  }
}

TEST_CASE("the cross-entropy kernel equals ATen's operations for odd sizes and large logits", "[training]") {
  for (const std::int64_t classes : {1, 2, 3, 10, 17, 100}) {
    const std::int64_t models = 3, rows = 5;
    const auto logits = drawn({models, rows, classes}, 1) * 30;
    auto labels = at::empty({models, rows}, at::kLong);
    auto weight = at::full({models, rows}, 0.25F);
    for (std::int64_t i = 0; i < models * rows; ++i)
      labels.mutable_data_ptr<std::int64_t>()[i] = i % classes;
    weight.select(1, 4).zero_();
    labels.select(1, 4).fill_(-1);
    const loss_input in{logits, logits, labels, weight, {}};
    const auto ours = (*cross_entropy_objective())(in), expected = reference_cross_entropy(in);
    CHECK(largest_difference(ours.d_logits, expected.d_logits) < 1e-6);
    CHECK(at::allclose(ours.values, expected.values, 1e-5, 1e-6));
  }
}

TEST_CASE("a NaN logit makes only its model's loss NaN", "[training]") {
  auto logits = drawn({2, 3, 4}, 1);
  const auto labels = at::zeros({2, 3}, at::kLong);
  const auto weight = at::full({2, 3}, 1.0F / 3.0F);
  const auto clean = (*cross_entropy_objective())({logits, logits, labels, weight, {}});
  logits[0][1][2] = std::numeric_limits<float>::quiet_NaN();
  const auto hurt = (*cross_entropy_objective())({logits, logits, labels, weight, {}});
  CHECK(std::isnan(hurt.values[0].item<double>()));
  CHECK(hurt.values[1].item<double>() == clean.values[1].item<double>());
  CHECK(same_bits(hurt.d_logits[1], clean.d_logits[1]));
}

TEST_CASE("the proximal term adds mu (w - start) to the gradient", "[training]") {
  const auto loss = proximal_objective(0.5);
  CHECK(loss->regularizes());
  CHECK_FALSE(proximal_objective(0.0)->regularizes());
  CHECK(loss->identity() != proximal_objective(0.25)->identity());
  auto gradients = floats({1, 1, 1});
  loss->regularize(floats({3, 0, -2}), floats({1, 0, 2}), 0, nullptr, gradients);
  CHECK(largest_difference(gradients, floats({2, 1, -1})) == 0.0);
}
