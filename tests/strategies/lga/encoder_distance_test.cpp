// Objective of the image reconstruction and its gradient: our code compared with autograd in float64.
#include "runtime/method/gradients.hpp"
#include "strategies/lga/gradient_inversion.hpp"
#include "tests/support/tensors.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

constexpr rng_key weights_key{.seed = 2, .purpose = first_method_purpose};

at::Tensor drawn_image(const gradient_encoder& encoder, std::uint64_t seed) {
  auto image = at::empty(encoder.image(), at::kFloat);
  rng_stream stream({.seed = seed, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < image.numel(); ++i)
    image.mutable_data_ptr<float>()[i] = static_cast<float>(stream.normal());
  return image;
}

std::vector<at::Tensor> gradients_of_image(const gradient_encoder& encoder, const at::Tensor& weights,
                                           const at::Tensor& image, std::int64_t label) {
  auto found = encoder.gradients(weights, image.unsqueeze(0), at::tensor(label, at::kLong).view({1}));
  for (auto& tensor : found)
    tensor = tensor[0].contiguous();
  return found;
}

struct distance {
  double value = 0.0;
  at::Tensor gradient{}; ///< [C H W]
};

distance by_hand(const gradient_encoder& encoder, const at::Tensor& weights, const std::vector<at::Tensor>& sent,
                 const at::Tensor& image, std::int64_t label) {
  distance found{.gradient = at::full({image.numel()}, 7.0F)};
  encoder_distance measure(encoder, weights);
  const auto wanted = sent_by(sent, label);
  for (int times = 0; times < 2; ++times) // the first call must leave nothing
    found.value =
        measure.value_and_gradient(image.const_data_ptr<float>(), wanted, found.gradient.mutable_data_ptr<float>());
  return found;
}

distance by_autograd(const gradient_encoder& encoder, const at::Tensor& weights, const std::vector<at::Tensor>& sent,
                     const at::Tensor& image, std::int64_t label) {
  const auto x = leaf_of(image.to(at::kDouble));
  const auto here = gradients_of_image(encoder, weights.to(at::kDouble), x, label);
  auto sum = at::zeros({}, at::kDouble);
  for (std::size_t g = 0; g < here.size(); ++g)
    sum = sum + (here[g] - sent[g].to(at::kDouble)).square().sum();
  const auto gradient = gradients_of(sum, {x}).front().flatten();
  return {.value = sum.item<double>(), .gradient = gradient};
}

} // namespace

TEST_CASE("value and gradient by our code equal autograd for the images of every data set") {
  const gradient_encoder encoders[] = {
      {{3, 32, 32}, 100}, {{3, 64, 64}, 7}, {{3, 84, 84}, 5}, {{1, 28, 28}, 10}, {{3, 9, 13}, 4}};
  for (const auto& encoder : encoders) {
    CAPTURE(encoder.image()[1], encoder.image()[2]);
    const auto weights = encoder.drawn(weights_key);
    const auto sent = gradients_of_image(encoder, weights, drawn_image(encoder, 3), 2);
    const auto image = drawn_image(encoder, 4);
    for (const std::int64_t label : {2, 0}) { // of the sent image, and another
      const auto expected = by_autograd(encoder, weights, sent, image, label);
      const auto found = by_hand(encoder, weights, sent, image, label);
      CHECK(found.value == Approx(expected.value).epsilon(1e-5));
      const double largest = expected.gradient.abs().max().item<double>();
      CHECK(largest > 0.0);
      CHECK((found.gradient.to(at::kDouble) - expected.gradient).abs().max().item<double>() < 2e-5 * largest);
    }
  }
}

TEST_CASE("at the sent image the objective and its gradient are 0") {
  const gradient_encoder encoder({3, 32, 32}, 100);
  const auto weights = encoder.drawn(weights_key);
  const auto image = drawn_image(encoder, 3);
  const auto sent = gradients_of_image(encoder, weights, image, 41);
  const auto here = by_hand(encoder, weights, sent, image, 41), away = by_hand(encoder, weights, sent, image * 0.5, 41);
  CHECK(here.value < 1e-9 * away.value);
  CHECK(here.gradient.abs().max().item<double>() < 1e-4 * away.gradient.abs().max().item<double>());
}
