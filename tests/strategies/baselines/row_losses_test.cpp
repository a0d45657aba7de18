// Losses of class-incremental methods row by row: three forms of distillation, by hand and against public code.
#include "strategies/baselines/row_losses.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor row(const std::vector<double>& values) { return at::tensor(values, at::kDouble).unsqueeze(0); }
constexpr distillation_form forms[] = {distillation_form::cross_entropy, distillation_form::kl_scaled,
                                       distillation_form::kl_elements};

} // namespace

TEST_CASE("three forms of distillation have their values and gradients", "[distillation]") {
  const auto z = row({1, 0, -1}), q = row({2, 0.5, 0});
  const auto at = [&](distillation_form form, double temperature) {
    return distilled_rows(z, q, {.form = form, .temperature = temperature});
  };
  CHECK_THAT(at(distillation_form::cross_entropy, 2).values.item<double>(), WithinAbs(1.008521, 1e-6));
  const auto scaled = at(distillation_form::kl_scaled, 2);
  CHECK_THAT(scaled.values.item<double>(), WithinAbs(0.024795, 1e-6));
  const auto expected = row({-0.073850, 0.101019, -0.027168});
  CHECK(largest_difference_of(scaled.gradient, expected) < 1e-6);
  CHECK(largest_difference_of(at(distillation_form::cross_entropy, 2).gradient * 4.0, expected) < 4e-6);
  CHECK_THAT(at(distillation_form::kl_scaled, 1).values.item<double>(), WithinAbs(0.019124, 1e-6));
  CHECK_THAT(at(distillation_form::kl_elements, 1).values.item<double>(), WithinAbs(0.006375, 1e-6));
}

TEST_CASE("no form sees a constant, and a teacher that agrees moves nothing", "[distillation]") {
  const auto q = row({2, 0.5, 0});
  for (const auto form : forms) {
    const distillation_rule rule{.form = form, .temperature = 2.0};
    CHECK(distilled_rows(q, q, rule).gradient.abs().max().item<double>() < 1e-15);
    CHECK(distilled_rows(q, q + 1.0, rule).gradient.abs().max().item<double>() < 1e-15);
  }
}

TEST_CASE("the cross-entropy form is PyCIL's distillation", "[distillation]") {
  const auto theirs = golden_record("icarl/pycil")["distillation"];
  const auto z = formula_tensor("icarl.old_logits", {6, 3}, 3.0), q = formula_tensor("icarl.teacher", {6, 3}, 2.0);
  const auto ours = distilled_rows(z, q, {.form = distillation_form::cross_entropy, .temperature = 2.0});
  CHECK_THAT(ours.values.mean().item<double>(), WithinAbs(theirs["value"].get<double>(), 1e-6));
  CHECK(largest_difference_of(ours.gradient / 6.0, listed_tensor(theirs["d_logits"], {6, 3})) < 1e-6);
}
