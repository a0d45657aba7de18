// Scores of the proxy's models: each draw of the noise, and predictions of a head with biases.
#include "strategies/lga/prototype_proxy.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using Catch::Approx;

namespace {

const rng_key drawing{.seed = 6, .purpose = first_method_purpose};

at::Tensor normals(rng_stream& stream, std::int64_t count) {
  auto made = at::empty({count}, at::kDouble);
  for (std::int64_t i = 0; i < count; ++i)
    made.mutable_data_ptr<double>()[i] = stream.normal();
  return made;
}

} // namespace

TEST_CASE("noise has the deviations of features in the paper, and squared variances in official code, times the "
          "scale") {
  const auto variances = at::linspace(50.0, 400.0, 8, at::kDouble);
  rng_stream expected(drawing), printed(drawing);
  CHECK(at::allclose(accepted_noise(variances, {.as_printed = true, .scale = 0.15}, printed),
                     normals(expected, 8) * variances.sqrt() * 0.15));
  const auto small = variances / 1000.0; // squares of official noise have a bound by squares of variances
  rng_stream again(drawing), released(drawing);
  CHECK(at::allclose(accepted_noise(small, {.as_printed = false, .scale = 0.15}, released),
                     normals(again, 8) * small.square() * 0.15));
}

TEST_CASE("official noise has the squared variance as deviation, and a bound by the sum of their squares") {
  const auto variances = at::tensor({0.04, 0.09}, at::kDouble);
  rng_stream expected(drawing), same(drawing);
  const auto noise = accepted_noise(variances, {.as_printed = false, .scale = 0.15}, same);
  CHECK(at::allclose(noise, normals(expected, 2) * at::tensor({0.00024, 0.001215}, at::kDouble)));
  rng_stream wide(drawing); // no draw respects the bound, so the last one is scaled to it
  const auto bounded = accepted_noise(variances, {.as_printed = false, .scale = 1e6}, wide);
  CHECK(bounded.square().sum().item<double>() == Approx(0.00097).epsilon(1e-9));
}

TEST_CASE("noise that exceeds its bound is scaled to it after twenty draws") {
  const auto variances = at::full({4}, 0.01, at::kDouble);
  const double bound = 0.1 * 0.04;
  rng_stream stream(drawing), counted(drawing);
  const auto noise = accepted_noise(variances, {.as_printed = true, .scale = 50.0}, stream);
  CHECK(noise.norm().item<double>() == Approx(bound).epsilon(1e-9));
  (void)normals(counted, 19 * 4);
  const auto last = normals(counted, 4);
  CHECK(at::allclose(noise / noise.norm(), last / last.norm()));
  CHECK(stream.normal() == counted.normal()); // no further draws
}

TEST_CASE("a head predicts with its biases, and all noisy copies count equally") {
  const auto features = at::tensor({1.0f, 0.0f, 0.0f, 1.0f}).view({2, 2});
  const auto truth = at::tensor({0, 1}, at::kLong);
  const auto score = [&](const std::vector<float>& bias, std::int64_t copies) {
    return monitor_score(features, truth, at::eye(2), at::tensor(bias), {.copies = copies}, drawing);
  };
  CHECK(score({0.0F, 0.0F}, 0) == 1.0);
  CHECK(score({0.0F, 2.0F}, 0) == 0.5); // it always predicts 1
  CHECK(score({0.0F, 2.0F}, 7) == 0.5); // each class is one point, so its copies are equal
}
