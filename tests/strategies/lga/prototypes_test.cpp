// Images of prototypes: changed before they are encoded, and reconstructed within [0, 1].
#include "strategies/lga/gradient_inversion.hpp"
#include "tests/support/learning.hpp"
#include "tests/support/method_driver.hpp"
#include "tests/support/program_check.hpp"
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t extent = 8, classes = 4, seen = 3;

} // namespace

TEST_CASE("prototypes take 50 steps of descent on the binary cross-entropy of the seen classes") {
  const auto net = model_named("linear", {3, extent, extent}, classes);
  const auto weights = initial_weights(*net, 3);
  const gradient_encoder encoder({3, extent, extent}, classes);
  const auto encoder_weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  auto in = std::make_shared<tensor_map>();
  in->put("encoder", encoder_weights);
  in->put("weights", weights);
  in->put("seen", at::tensor(seen, at::kLong));
  const auto source = drawn_data(seen, {3, extent, extent}, classes); // row r has label r
  const auto pixels = source->images.to(at::kDouble) / 255.0;
  const auto labels = at::arange(seen);

  // With scores z = W x + b of `seen` classes the gradient of a row is W^T (sigmoid(z) - y)
  // seen.
  const auto w = as_in_files(weights, net->layout()[0]).narrow(0, 0, seen).to(at::kDouble);
  const auto b = as_in_files(weights, net->layout()[1]).narrow(0, 0, seen).to(at::kDouble);
  auto x = pixels.flatten(1);
  for (int step = 0; step < 50; ++step) {
    const auto gradient = (at::sigmoid(x.mm(w.t()) + b) - at::one_hot(labels, seen)).mm(w) / static_cast<double>(seen);
    x = x - 0.2 * (gradient + 1e-5 * x);
  }
  const auto moved = x.view_as(pixels);
  REQUIRE((moved - pixels).abs().max().item<double>() > 0.05);
  for (const bool perturbed : {false, true}) {
    CAPTURE(perturbed);
    const auto body =
        prototype_program(net, encoder, perturbed ? prototype_perturbation::pixels : prototype_perturbation::none);
    const auto done = run_by_width({{.body = body, .in = in, .samples = rows_from(source, 0, seen)}}, 1);
    const auto expected = encoder.gradients(encoder_weights.to(at::kDouble), perturbed ? moved : pixels, labels);
    for (std::size_t g = 0; g < expected.size(); ++g) {
      CAPTURE(encoder.tensors()[g].name);
      const auto& found = tensors_of(done[0]).at(encoder.tensors()[g].name);
      CHECK(at::allclose(found.to(at::kDouble), expected[g].view_as(found), 1e-3, 1e-6));
    }
  }
}

TEST_CASE("in latent space they descend the cross-entropy of noisy features") {
  const auto net = model_named("linear", {3, extent, extent}, classes); // features are pixels
  const auto weights = initial_weights(*net, 3);
  const gradient_encoder encoder({3, extent, extent}, classes);
  const auto encoder_weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  const auto source = drawn_data(seen, {3, extent, extent}, classes);
  const auto pixels = source->images.to(at::kDouble) / 255.0;
  const auto labels = at::arange(seen);
  const std::int64_t width = 3 * extent * extent;
  const auto variances = at::linspace(0.0, 2.0, seen * width, at::kDouble).view({seen, width});
  auto in = std::make_shared<tensor_map>();
  in->put("encoder", encoder_weights);
  in->put("weights", weights);
  in->put("seen", at::tensor(seen, at::kLong));
  in->put("variances", variances);
  const rng_key stream{.seed = 4, .purpose = first_method_purpose};

  const auto w = as_in_files(weights, net->layout()[0]).narrow(0, 0, seen).to(at::kDouble);
  const auto b = as_in_files(weights, net->layout()[1]).narrow(0, 0, seen).to(at::kDouble);
  const auto by_channel = [](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).to(at::kDouble).view({1, 3, 1, 1});
  };
  const auto scale = by_channel(source->scale) * 255.0, shift = by_channel(source->shift);
  rng_stream draw(stream);
  auto x = pixels.clone();
  for (int step = 0; step < 50; ++step) {
    auto noise = at::empty({seen, width}, at::kDouble);
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      noise.mutable_data_ptr<double>()[i] = draw.normal();
    const auto features = (x * scale + shift).flatten(1) + 0.1 * variances.sqrt() * noise;
    const auto gradient = (at::softmax(features.mm(w.t()) + b, 1) - at::one_hot(labels, seen)).mm(w);
    x = x - gradient.view_as(x) * scale; // rate 1
  }
  const auto body = prototype_program(net, encoder, prototype_perturbation::latent);
  const auto done =
      run_by_width({{.body = body, .in = in, .samples = rows_from(source, 0, seen), .stream = stream}}, 1);
  const auto expected = encoder.gradients(encoder_weights.to(at::kDouble), x, labels);
  for (std::size_t g = 0; g < expected.size(); ++g) {
    CAPTURE(encoder.tensors()[g].name);
    const auto& sent = tensors_of(done[0]).at(encoder.tensors()[g].name);
    CHECK(at::allclose(sent.to(at::kDouble), expected[g].view_as(sent), 1e-3, 1e-5));
  }
}

TEST_CASE("values of an image beyond black and white are clamped") {
  const gradient_encoder encoder({3, extent, extent}, classes);
  const auto weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  const auto left = encoder.gradients(weights, at::full({1, 3, extent, extent}, 0.5F), at::zeros({1}, at::kLong));
  auto in = std::make_shared<tensor_map>();
  for (std::size_t g = 0; g < left.size(); ++g)
    in->put(encoder.tensors()[g].name, left[g][0].contiguous());
  in->put("encoder", weights);
  // A rate near zero leaves the drawn start unchanged: standard normal values, about half of them below 0.
  const auto body = inversion_program(encoder, {.steps = 1, .learning_rate = 1e-9, .kept = 1});
  const auto done = run_by_width({{.body = body, .in = in, .stream = {.seed = 1, .purpose = first_method_purpose}}}, 1);
  const auto image = tensors_of(done[0]).at("images");
  CHECK(std::abs((image == 0).to(at::kDouble).mean().item<double>() - 0.5) < 0.15);
  CHECK(std::abs((image == 255).to(at::kDouble).mean().item<double>() - 0.159) < 0.11);
}
