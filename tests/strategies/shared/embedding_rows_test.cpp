#include "runtime/training/gather.hpp"
#include "strategies/shared/embedding_rows.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <set>
using namespace mneme;
using Catch::Matchers::WithinAbs;

namespace {

const rng_key some_key{.seed = 3, .purpose = first_method_purpose};
const embedding_shape two_wide{.embedding = 2};

/// Rows of mu (i, -i) and log sigma (0.5, -20), labels i.
embedding_rows counted(std::int64_t n) {
  embedding_rows made{.features = at::empty({n, 4}), .labels = at::arange(n, at::kInt)};
  for (std::int64_t i = 0; i < n; ++i)
    made.features[i] = at::tensor({static_cast<float>(i), static_cast<float>(-i), 0.5F, -20.0F});
  return made;
}

} // namespace

TEST_CASE("samples of an embedding have its mean and deviation") {
  embedding_rows rows{.features = at::tensor({1.5F, -0.5F, 0.2F, -1.0F}).repeat({100'000, 1}),
                      .labels = at::zeros({100'000}, at::kInt)};
  const auto z = sampled(rows, two_wide, some_key).to(at::kDouble);
  const auto mean = z.mean(0), deviation = z.std(0);
  CHECK_THAT(mean[0].item<double>(), WithinAbs(1.5, 0.02));
  CHECK_THAT(mean[1].item<double>(), WithinAbs(-0.5, 0.01));
  CHECK_THAT(deviation[0].item<double>(), WithinAbs(std::exp(0.2), 0.02));
  CHECK_THAT(deviation[1].item<double>(), WithinAbs(std::exp(-1.0), 0.01));
}

TEST_CASE("samples follow their key, and log deviations are clamped") {
  const auto rows = counted(5);
  CHECK(at::equal(sampled(rows, two_wide, some_key), sampled(rows, two_wide, some_key)));
  auto other = some_key;
  other.visit = 1;
  CHECK_FALSE(at::equal(sampled(rows, two_wide, some_key), sampled(rows, two_wide, other)));
  const auto from_mean = (sampled(rows, two_wide, some_key) - rows.features.narrow(1, 0, 2)).abs();
  CHECK(from_mean.select(1, 1).max().item<float>() < 5.0F * std::exp(-6.0F));
  CHECK(from_mean.select(1, 1).min().item<float>() > 0.0F);
  embedding_shape unbounded = two_wide;
  unbounded.low = -80.0;
  const auto tight = (sampled(rows, unbounded, some_key) - rows.features.narrow(1, 0, 2)).abs();
  CHECK(tight.select(1, 1).max().item<float>() < 1e-6F);
}

TEST_CASE("a training set concatenates its parts, and every epoch draws new samples from normals") {
  const std::vector<embedding_rows> parts{counted(3), counted(2)};
  const auto view = training_set(parts, two_wide, false);
  const auto& source = *view.source;
  CHECK(source.labels == std::vector<std::int32_t>{0, 1, 2, 0, 1});
  CHECK(*view.rows == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(at::equal(source.vectors, at::tensor({0, 0, 1, -1, 2, -2, 0, 0, 1, -1}, at::kFloat).view({5, 2})));
  CHECK(at::allclose(source.deviations, at::tensor({std::exp(0.5F), std::exp(-6.0F)}).expand({5, 2})));
  at::Tensor first = at::empty({5, 2}), second = at::empty({5, 2}), means = at::empty({5, 2});
  std::vector<rng_key> noise;
  for (const std::int64_t epoch : {0, 1}) {
    noise.clear();
    for (std::int64_t i = 0; i < 5; ++i)
      noise.push_back(noise_key(some_key, epoch, i));
    gather_vectors(source, *view.rows, noise, (epoch == 0 ? first : second).mutable_data_ptr<float>());
  }
  gather_vectors(source, *view.rows, {}, means.mutable_data_ptr<float>());
  CHECK(at::equal(means, source.vectors));
  CHECK_FALSE(at::equal(first, second));
  CHECK_FALSE(at::equal(first[0], first[3])); // equal rows at different positions
}

TEST_CASE("a training set of points has no deviations") {
  embedding_rows points{.features = at::ones({2, 2}), .labels = at::zeros({2}, at::kInt)};
  CHECK_FALSE(training_set({{points}}, two_wide, true).source->deviations.defined());
}

TEST_CASE("drawn positions repeat none before all were drawn") {
  const auto seven = draw_positions(10, 7, some_key);
  CHECK(std::set<std::int64_t>(seven.begin(), seven.end()).size() == 7);
  CHECK(seven == draw_positions(10, 7, some_key));
  const auto many = draw_positions(4, 11, some_key);
  REQUIRE(many.size() == 11);
  for (std::int64_t i = 0; i < 4; ++i)
    CHECK(std::count(many.begin(), many.end(), i) >= 2);
  CHECK(draw_positions(0, 0, some_key).empty());
  std::vector<int> hits(10);
  for (std::uint64_t i = 0; i < 20'000; ++i)
    for (const auto position : draw_positions(10, 3, {.seed = i, .purpose = first_method_purpose}))
      ++hits[static_cast<std::size_t>(position)];
  for (const auto count : hits)
    CHECK_THAT(count / 20'000.0, WithinAbs(0.3, 0.015));
}

TEST_CASE("a share is rounded, and at least one row unless it is 0") {
  CHECK(share_of(0.1, 6000) == 600);
  CHECK(share_of(0.1, 25) == 3);
  CHECK(share_of(0.1, 3) == 1);
  CHECK(share_of(0.0, 3) == 0);
  CHECK(share_of(0.5, 0) == 0);
}

TEST_CASE("rows of embeddings are selected with their labels") {
  const std::vector<std::int64_t> positions{4, 0, 4};
  const auto picked = counted(5).at(positions);
  CHECK(at::equal(picked.labels, at::tensor({4, 0, 4}, at::kInt)));
  CHECK(at::equal(picked.features.select(1, 1), at::tensor({-4.0F, 0.0F, -4.0F})));
}
