// Loss of variational encoders, compared with values worked out by hand, sampling and finite differences.
#include "runtime/base/rng.hpp"
#include "strategies/fil_ver/ver_loss.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
using namespace mneme;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

namespace {

constexpr double low = -6.0, high = 3.0;

double kl_of(std::vector<float> mean, const std::vector<float>& log, double from = low, double to = high) {
  const auto width = std::ssize(mean);
  mean.insert(mean.end(), log.begin(), log.end());
  return kl_to_standard(mean.data(), width, from, to);
}

/// One model with two rows, the second of them padding unless `both`, two classes, embeddings of two numbers.
struct step {
  at::Tensor logits = at::tensor({0.3F, -0.2F, 1.0F, 0.5F}).view({1, 2, 2});
  at::Tensor features = at::tensor({0.5F, -1.0F, 0.2F, -0.7F, 2.0F, 0.1F, 4.0F, -8.0F}).view({1, 2, 4});
  at::Tensor labels = at::tensor({1, 0}, at::kLong).view({1, 2});
  at::Tensor row_weight = at::tensor({0.5F, 0.5F}).view({1, 2});
  loss_output at_beta(double beta) const {
    return (*ver_loss(beta, low, high))(
        {.logits = logits, .features = features, .labels = labels, .row_weight = row_weight, .auxiliaries = {}});
  }
};

} // namespace

TEST_CASE("the KL divergence is 0 for a standard normal and d / 2 if all means are 1") {
  CHECK(kl_of(std::vector<float>(256, 0.0F), std::vector<float>(256, 0.0F)) == 0.0);
  CHECK_THAT(kl_of(std::vector<float>(256, 1.0F), std::vector<float>(256, 0.0F)), WithinRel(128.0, 1e-12));
  // 1/2 (0.25 + e^-1.4 - 1 + 1.4) + 1/2 (1 + e^0.4 - 1 - 0.4)
  const double wanted = 0.5 * (0.25 + std::exp(-1.4) - 1.0 + 1.4) + 0.5 * (1.0 + std::exp(0.4) - 1.0 - 0.4);
  CHECK_THAT(kl_of({0.5F, -1.0F}, {-0.7F, 0.2F}), WithinRel(wanted, 1e-6));
  CHECK(kl_of({0.3F}, {-0.5F}) > 0.0);
}

TEST_CASE("log deviations are clamped to their bounds") {
  CHECK(kl_of({0.0F}, {-30.0F}) == kl_of({0.0F}, {-6.0F}));
  CHECK(kl_of({0.0F}, {9.0F}) == kl_of({0.0F}, {3.0F}));
  CHECK(kl_of({0.0F}, {-30.0F}, -80.0, 40.0) > kl_of({0.0F}, {-6.0F}));
}

TEST_CASE("the KL divergence agrees with sampling") {
  const double mean = 0.8, log = -0.4, sigma = std::exp(log);
  rng_stream draw({.seed = 1, .purpose = first_method_purpose});
  double sum = 0.0;
  constexpr int draws = 400'000;
  for (int i = 0; i < draws; ++i) {
    const double e = draw.normal(), z = mean + sigma * e;
    sum += -log - 0.5 * e * e + 0.5 * z * z; // log q(z) - log p(z)
  }
  CHECK_THAT(kl_of({static_cast<float>(mean)}, {static_cast<float>(log)}), WithinAbs(sum / draws, 0.005));
}

TEST_CASE("beta times the KL divergence, summed over the embedding and averaged over rows, is added to the loss") {
  const step single;
  const auto plain = single.at_beta(0.0), with = single.at_beta(0.1);
  CHECK(at::equal(with.d_logits, plain.d_logits));
  const double kl = kl_of({0.5F, -1.0F}, {0.2F, -0.7F}) + kl_of({2.0F, 0.1F}, {4.0F, -8.0F});
  CHECK_THAT(with.values[0].item<double>() - plain.values[0].item<double>(), WithinRel(0.1 * 0.5 * kl, 1e-6));
  CHECK(plain.d_features.abs().sum().item<float>() == 0.0F);
}

TEST_CASE("the gradient of the KL divergence is mu and sigma^2 - 1, and 0 beyond the bounds") {
  const step single;
  const auto d = single.at_beta(0.1).d_features;
  const auto wanted = at::tensor({0.05 * 0.5, 0.05 * -1.0, 0.05 * (std::exp(0.4) - 1.0), 0.05 * (std::exp(-1.4) - 1.0),
                                  0.05 * 2.0, 0.05 * 0.1, 0.0, 0.0})
                          .view({1, 2, 4});
  CHECK(at::allclose(d.to(at::kDouble), wanted, 1e-5, 1e-7));
}

TEST_CASE("padding rows add nothing to the loss of a variational encoder") {
  step padded;
  padded.row_weight = at::tensor({1.0F, 0.0F}).view({1, 2});
  padded.labels = at::tensor({1, -1}, at::kLong).view({1, 2});
  const auto before = padded.at_beta(0.1);
  padded.features = padded.features.clone();
  padded.features[0][1].fill_(7.0F);
  const auto after = padded.at_beta(0.1);
  CHECK(before.values.item<double>() == after.values.item<double>());
  CHECK(after.d_features[0][1].abs().sum().item<float>() == 0.0F);
}

TEST_CASE("a model's KL divergence does not depend on stacked models") {
  const step single;
  step two;
  two.logits = at::cat({single.logits, single.logits.flip(1)});
  two.features = at::cat({single.features, single.features.flip(1)});
  two.labels = at::cat({single.labels, single.labels.flip(1)});
  two.row_weight = at::cat({single.row_weight, single.row_weight});
  const auto alone = single.at_beta(0.3), beside = two.at_beta(0.3);
  CHECK(at::equal(beside.d_features[0], alone.d_features[0]));
  CHECK(beside.values[0].item<double>() == alone.values[0].item<double>());
}

TEST_CASE("losses with different weights or bounds have different identities") {
  CHECK(ver_loss(1e-5, low, high)->identity() == ver_loss(1e-5, low, high)->identity());
  CHECK(ver_loss(1e-5, low, high)->identity() != ver_loss(1.0000001e-5, low, high)->identity());
  CHECK(ver_loss(1e-5, low, high)->identity() != ver_loss(1e-5, -7.0, high)->identity());
}
