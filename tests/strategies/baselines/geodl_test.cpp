// GeoDL: the flow between two subspaces, by hand and compared with the official code.
#include "strategies/baselines/geodesic_flow.hpp"
#include "tests/support/rehearsing_client.hpp"
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <numbers>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::WithinAbs;

namespace {

at::Tensor column(double x, double y) { return at::tensor({x, y}, at::kDouble).view({2, 1}); }
at::Tensor row(double x, double y) { return at::tensor({x, y}, at::kDouble).view({1, 2}); }
double value_of(double angle, geodesic_form form) {
  const auto flow = geodesic_flow(column(1, 0), column(std::cos(angle), std::sin(angle)));
  return geodesic_rows(row(std::cos(angle), std::sin(angle)), row(1, 0), flow, form).item<double>();
}
row_results geodesic_results(const at::Tensor& features, const at::Tensor& taught, const at::Tensor& flow,
                             geodesic_form form) {
  return results_of(features, [&](const at::Tensor& x) { return geodesic_rows(x, taught, flow, form); });
}
/// First six columns of an orthonormal basis from PyTorch's qr.
at::Tensor orthonormal(const std::string& name) {
  return std::get<0>(at::linalg_qr(formula_tensor(name, {20, 6}).to(at::kDouble)));
}

} // namespace

TEST_CASE("the flow between two lines equals the matrix worked out by hand", "[geodl]") {
  const auto right_angle = geodesic_flow(column(1, 0), column(0, 1));
  CHECK(largest_difference_of(right_angle,
                              at::tensor({0.5, 1 / std::numbers::pi, 1 / std::numbers::pi, 0.5}, at::kDouble)) < 1e-12);
  const double third = std::numbers::pi / 3;
  CHECK(largest_difference_of(geodesic_flow(column(1, 0), column(std::cos(third), std::sin(third))),
                              at::tensor({0.706748, 0.358099, 0.358099, 0.293252}, at::kDouble)) < 1e-6);
  CHECK_THAT(value_of(std::numbers::pi / 2, geodesic_form::cosine), WithinAbs(0.363380, 1e-6));
  CHECK_THAT(value_of(std::numbers::pi / 2, geodesic_form::difference), WithinAbs(0.363380, 1e-6));
  CHECK_THAT(value_of(third, geodesic_form::cosine), WithinAbs(0.061198, 1e-6));
  CHECK_THAT(value_of(third, geodesic_form::difference), WithinAbs(0.086503, 1e-6));
  CHECK_THAT(value_of(std::numbers::pi / 6, geodesic_form::cosine), WithinAbs(0.003305, 1e-6));
  CHECK_THAT(value_of(std::numbers::pi / 6, geodesic_form::difference), WithinAbs(0.006038, 1e-6));
  CHECK(largest_difference_of(geodesic_flow(column(1, 0), column(1, 0)), at::tensor({1, 0, 0, 0}, at::kDouble)) <
        1e-15);
}

TEST_CASE("gradients of the geodesic losses are gradients of the features", "[geodl]") {
  const double angle = std::numbers::pi / 3;
  const auto flow = geodesic_flow(column(1, 0), column(std::cos(angle), std::sin(angle)));
  const auto x = row(2 * std::cos(angle), 2 * std::sin(angle));
  const auto cosine = geodesic_results(x, row(1, 0), flow, geodesic_form::cosine).gradient;
  CHECK(largest_difference_of(cosine, row(-0.059326, 0.034252)) < 1e-6);
  CHECK_THAT((cosine * x).sum().item<double>(), WithinAbs(0.0, 1e-12));
  CHECK(largest_difference_of(geodesic_results(x, row(1, 0), flow, geodesic_form::difference).gradient,
                              row(-0.064877, 0.037457)) < 1e-6);
}

TEST_CASE("a flow is symmetric, and its trace is the number of directions", "[geodl]") {
  const auto flow = geodesic_flow(orthonormal("geodl.from"), orthonormal("geodl.to"));
  CHECK_THAT(flow.trace().item<double>(), WithinAbs(6.0, 1e-10));
  CHECK(at::allclose(flow, flow.t()));
  const auto values = std::get<0>(at::linalg_eigh(flow));
  CHECK(values.min().item<double>() > -1e-12);
  CHECK(values.max().item<double>() < 1.0 + 1e-12);
}

TEST_CASE("the flow and both losses equal the official code, which uses float32", "[geodl]") {
  const auto theirs = golden_record("geodl/official");
  const auto flow = geodesic_flow(orthonormal("geodl.from"), orthonormal("geodl.to"));
  CHECK(largest_difference_of(flow, listed_tensor(theirs["flow"], {20, 20})) < 1e-4);
  const auto now = formula_tensor("geodl.now", {8, 20}).to(at::kDouble);
  const auto before = formula_tensor("geodl.before", {8, 20}).to(at::kDouble);
  const auto cosine = geodesic_results(now, before, flow, geodesic_form::cosine);
  CHECK_THAT(cosine.values.mean().item<double>(), WithinAbs(theirs["cosine"]["value"].get<double>(), 1e-4));
  CHECK(largest_difference_of(cosine.gradient / 8.0, listed_tensor(theirs["cosine"]["gradient"], {8, 20})) < 1e-4);
  const auto unit = [](const at::Tensor& x) { return x / x.norm(2, {1}, true); };
  const auto of_step = geodesic_flow(subspace_basis(unit(before)), subspace_basis(unit(now)));
  const auto difference = geodesic_results(now, before, of_step, geodesic_form::difference);
  CHECK_THAT(difference.values.mean().item<double>(), WithinAbs(theirs["difference"]["value"].get<double>(), 1e-4));
  CHECK(largest_difference_of(difference.gradient / 8.0, listed_tensor(theirs["difference"]["gradient"], {8, 20})) <
        1e-4);
}

TEST_CASE("the losses depend neither on the order of feature entries nor on their length", "[geodl]") {
  const rehearsing_client client("geodl", {2, 2});
  const auto objective = client.training(1).objective;
  rehearsed_step step{.logits = at::zeros({6, 4}),
                      .labels = at::tensor({0, 1, 2, 3, 2, 3}, at::kLong),
                      .features = formula_tensor("geodl.x", {6, 9}),
                      .taught = formula_tensor("geodl.y", {6, 9})};
  const auto plain = step.loss_of(*objective).values.item<double>();
  auto turned = step;
  turned.features = step.features.flip({1});
  turned.taught = step.taught.flip({1});
  CHECK_THAT(turned.loss_of(*objective).values.item<double>(), WithinAbs(plain, 1e-6));
  auto longer = step;
  longer.features = step.features * 3.0;
  CHECK_THAT(longer.loss_of(*objective).values.item<double>(), WithinAbs(plain, 1e-6));
  step.padded = 3;
  CHECK_THAT(step.loss_of(*objective).values.item<double>(), WithinAbs(plain, 1e-6));
  rehearsed_step few{.logits = at::zeros({3, 4}),
                     .labels = at::tensor({0, 1, 2}, at::kLong),
                     .features = formula_tensor("geodl.x", {3, 9}),
                     .taught = formula_tensor("geodl.y", {3, 9})};
  CHECK_THAT(few.loss_of(*objective).values.item<double>(),
             WithinAbs(std::log(4.0), 1e-6)); // three rows have no geodesic term
}
