// Per-row losses of class-incremental methods: forms of distillation, by hand and compared with official code.
#include "runtime/method/gradients.hpp"
#include "strategies/shared/row_losses.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor row(const std::vector<double>& values) { return at::tensor(values, at::kDouble).unsqueeze(0); }
row_results distilled_rows(const at::Tensor& student, const at::Tensor& teacher, const distillation_rule& rule) {
  return results_of(student, [&](const at::Tensor& z) { return distillation_rows(z, teacher, rule); });
}
constexpr distillation_form forms[] = {distillation_form::cross_entropy, distillation_form::kl,
                                       distillation_form::kl_scaled,     distillation_form::kl_elements,
                                       distillation_form::kl_lucir,      distillation_form::sigmoid};

} // namespace

TEST_CASE("forms of distillation have the values and gradients worked out by hand", "[distillation]") {
  const auto z = row({1, 0, -1}), q = row({2, 0.5, 0});
  const auto at = [&](distillation_form form, double temperature) {
    return distilled_rows(z, q, {.form = form, .temperature = temperature, .class_count = 6});
  };
  CHECK_THAT(at(distillation_form::cross_entropy, 2).values.item<double>(), WithinAbs(1.008521, 1e-6));
  const auto scaled = at(distillation_form::kl_scaled, 2);
  CHECK_THAT(scaled.values.item<double>(), WithinAbs(0.024795, 1e-6));
  const auto expected = row({-0.073850, 0.101019, -0.027168});
  CHECK(largest_difference_of(scaled.gradient, expected) < 1e-6);
  CHECK(largest_difference_of(at(distillation_form::cross_entropy, 2).gradient * 4.0, expected) < 4e-6);
  CHECK_THAT(at(distillation_form::kl, 2).values.item<double>() * 4.0, WithinAbs(0.024795, 1e-6));
  CHECK_THAT(at(distillation_form::kl_scaled, 1).values.item<double>(), WithinAbs(0.019124, 1e-6));
  CHECK_THAT(at(distillation_form::kl_elements, 1).values.item<double>(), WithinAbs(0.006375, 1e-6));
  CHECK_THAT(at(distillation_form::kl_lucir, 2).values.item<double>() * 4.0, WithinAbs(0.024795, 4e-6));
  const auto sigmoids = at(distillation_form::sigmoid, 1); // three of six columns
  CHECK_THAT(sigmoids.values.item<double>(),
             WithinAbs(at::binary_cross_entropy_with_logits(z, at::sigmoid(q)).item<double>() / 2.0, 1e-12));
}

TEST_CASE("softmax forms ignore a constant, sigmoids do not, and an equal teacher gives no gradient",
          "[distillation]") {
  const auto q = row({2, 0.5, 0});
  for (const auto form : forms) {
    const distillation_rule rule{.form = form, .temperature = 2.0, .class_count = 3};
    CHECK(distilled_rows(q, q, rule).gradient.abs().max().item<double>() < 1e-15);
    const auto moved = distilled_rows(q, q + 1.0, rule).gradient;
    if (form != distillation_form::sigmoid)
      CHECK(moved.abs().max().item<double>() < 1e-15);
    else
      CHECK(largest_difference_of(distilled_rows(row({1, 0, -1}), row({2, 1, 0}), rule).gradient,
                                  row({-0.049913, -0.077020, -0.077020})) < 1e-6);
  }
}

TEST_CASE("the cross-entropy form equals PyCIL's distillation", "[distillation]") {
  const auto theirs = golden_record("icarl/pycil")["distillation"];
  const auto z = formula_tensor("icarl.old_logits", {6, 3}, 3.0), q = formula_tensor("icarl.teacher", {6, 3}, 2.0);
  const auto ours = distilled_rows(z, q, {.form = distillation_form::cross_entropy, .temperature = 2.0});
  CHECK_THAT(ours.values.mean().item<double>(), WithinAbs(theirs["value"].get<double>(), 1e-6));
  CHECK(largest_difference_of(ours.gradient / 6.0, listed_tensor(theirs["d_logits"], {6, 3})) < 1e-6);
}

TEST_CASE("a smoothed cross-entropy of rows equals LibTorch's", "[distillation]") {
  const auto z = leaf_of(at::cat({row({1, 0, -1}), row({2, 0.5, 0})}));
  const auto labels = at::tensor({std::int64_t{2}, std::int64_t{0}}, at::kLong);
  for (const double smoothing : {0.0, 0.1, 1.0}) {
    const auto rows =
        results_of(z.detach(), [&](const at::Tensor& at) { return cross_entropy_rows(at, labels, smoothing); });
    const auto theirs = at::cross_entropy_loss(z, labels, {}, at::Reduction::None, -100, smoothing);
    CHECK(largest_difference_of(rows.values, theirs) < 1e-12);
    CHECK(largest_difference_of(rows.gradient, gradients_of(theirs, {z}).front()) < 1e-12);
  }
}
