// Images of the proxy: the encoder, its gradients, and reconstructed images.
#include "runtime/method/gradients.hpp"
#include "strategies/lga/gradient_inversion.hpp"
#include "strategies/lga/prototype_proxy.hpp"
#include "tests/support/program_check.hpp"
#include <ATen/ATen.h>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using namespace mneme;
using namespace mneme::test;
using Catch::Approx;

namespace {

at::Tensor drawn_images(std::int64_t count, std::int64_t extent) {
  auto images = at::empty({count, 3, extent, extent}, at::kFloat);
  rng_stream stream({.seed = 4, .purpose = first_method_purpose});
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.mutable_data_ptr<float>()[i] = static_cast<float>(stream.uniform());
  return images;
}

/// The same net in LibTorch's operators and autograd, in float64, for one image.
std::vector<at::Tensor> by_autograd(const gradient_encoder& encoder, const at::Tensor& weights, const at::Tensor& image,
                                    std::int64_t label, std::int64_t first_stride) {
  std::vector<at::Tensor> parameters;
  for (std::int64_t offset = 0; const auto& tensor : encoder.tensors()) {
    const auto shaped = at::empty(tensor.shape, at::kDouble);
    parameters.push_back(leaf_of(weights.narrow(0, offset, shaped.numel()).to(at::kDouble).view(tensor.shape)));
    offset += shaped.numel();
  }
  auto value = image.to(at::kDouble).unsqueeze(0);
  const std::int64_t strides[] = {first_stride, 2, 1};
  for (std::size_t i = 0; i < 3; ++i)
    value = at::sigmoid(at::conv2d(value, parameters[2 * i], parameters[2 * i + 1], strides[i], 2));
  const auto logits = at::linear(value.flatten(1), parameters[6], parameters[7]);
  const auto loss = -at::log_softmax(logits, 1)[0][label];
  return gradients_of(loss, parameters);
}

constexpr std::int64_t extent = 8, labels = 5;

program_job inversion_of(const program_ref& body, const gradient_encoder& encoder, const at::Tensor& weights,
                         const at::Tensor& image, std::int64_t label, std::uint32_t number) {
  const auto left = encoder.gradients(weights, image.unsqueeze(0), at::tensor(std::vector<std::int64_t>{label}));
  auto in = std::make_shared<tensor_map>();
  for (std::size_t g = 0; g < left.size(); ++g)
    in->put(encoder.tensors()[g].name, left[g][0].contiguous());
  in->put("encoder", weights);
  return {.body = body, .in = in, .stream = {.seed = 1, .purpose = first_method_purpose, .client = {number}}};
}

} // namespace

TEST_CASE("the encoder has the sizes of the papers' data sets") {
  const gradient_encoder cifar({3, 32, 32}, 100), tiny({3, 64, 64}, 200), mini({3, 84, 84}, 100);
  CHECK(cifar.size() == 85'036);
  CHECK(cifar.size() * 4 == 340'144);
  CHECK(tiny.size() == 161'936);
  for (const auto& encoder : {cifar, tiny, mini}) {
    CHECK(encoder.tensors().size() == 8);
    CHECK(encoder.tensors()[6].shape.back() == 768);
  }
}

TEST_CASE("our gradients equal autograd's, and the label can be read from them") {
  const gradient_encoder encoder({3, extent, extent}, labels);
  const auto weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  const auto images = drawn_images(6, extent);
  std::vector<std::int64_t> truth{3, 0, 4, 4, 1, 2};
  const auto found = encoder.gradients(weights, images, at::tensor(truth));
  for (std::int64_t i = 0; i < 6; ++i) {
    const auto label = truth[static_cast<std::size_t>(i)];
    const auto expected = by_autograd(encoder, weights, images[i], label, 2);
    for (std::size_t g = 0; g < 8; ++g) {
      CAPTURE(i, g);
      CHECK((found[g][i].to(at::kDouble) - expected[g]).abs().max().item<double>() < 1e-6);
    }
    CHECK(label_of_gradients(found[6][i]) == label);
    CHECK(found[7][i].sum().item<double>() == Approx(0.0).margin(1e-6));
  }
}

TEST_CASE("the objective's gradient equals finite differences") {
  const gradient_encoder encoder({3, extent, extent}, labels);
  const auto weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose}).to(at::kDouble);
  const auto images = drawn_images(2, extent).to(at::kDouble);
  const auto truth = at::tensor(std::vector<std::int64_t>{3});
  const auto target = encoder.gradients(weights, images.narrow(0, 0, 1), truth);
  const auto objective = [&](const at::Tensor& x) {
    auto sum = at::zeros({}, at::kDouble);
    const auto here = encoder.gradients(weights, x, truth);
    for (std::size_t g = 0; g < here.size(); ++g)
      sum = sum + (here[g] - target[g]).square().sum();
    return sum;
  };
  CHECK(objective(images.narrow(0, 0, 1)).item<double>() == 0.0);
  const auto x = leaf_of(images.narrow(0, 1, 1));
  const auto value = objective(x);
  CHECK(value.item<double>() > 0.0);
  const auto gradient = gradients_of(value, {x}).front().flatten();
  for (const std::int64_t i : {0, 17, 100, 191}) {
    const double step = 1e-5;
    auto up = x.detach().clone(), down = x.detach().clone();
    up.flatten()[i] += step;
    down.flatten()[i] -= step;
    const double expected = (objective(up).item<double>() - objective(down).item<double>()) / (2 * step);
    CHECK(gradient[i].item<double>() == Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("images are reconstructed from their gradients with equal bits, alone or stacked") {
  const gradient_encoder encoder({3, extent, extent}, labels);
  const auto weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  const auto images = drawn_images(5, extent);
  const auto body = inversion_program(encoder, {.steps = 12, .learning_rate = 0.5, .kept = 3});
  std::vector<program_job> jobs;
  for (std::uint32_t i = 0; i < 5; ++i)
    jobs.push_back(inversion_of(body, encoder, weights, images[i], i, i));
  CHECK(jobs_that_differ(jobs, 5) == 0);
  const auto done = run_by_width(jobs, 5);
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto& out = tensors_of(done[static_cast<std::size_t>(i)]);
    const auto objective = out.at("objective");
    CAPTURE(i, objective[0].item<double>(), objective[1].item<double>());
    CHECK(out.at("label").item<std::int64_t>() == i);
    CHECK(out.at("images").sizes() == std::vector<std::int64_t>{3, 3, extent, extent});
    CHECK(objective[1].item<double>() < 1e-3 * objective[0].item<double>());
  }
}

TEST_CASE("an inversion that diverges is restarted, and given up after the third attempt") {
  const gradient_encoder encoder({3, extent, extent}, labels);
  const auto weights = encoder.drawn({.seed = 2, .purpose = first_method_purpose});
  const auto body = inversion_program(encoder, {.steps = 4, .learning_rate = 0.5, .kept = 1});
  auto broken = inversion_of(body, encoder, weights, drawn_images(1, extent)[0], 1, 0);
  auto in = std::make_shared<tensor_map>(*broken.in);
  in->put("1.bias", at::full({12}, std::numeric_limits<float>::infinity()));
  broken.in = in;
  const auto whole = inversion_of(body, encoder, weights, drawn_images(1, extent)[0], 1, 0);
  const auto done = run_by_width({broken, whole}, 2);
  CHECK(tensors_of(done[0]).at("objective")[1].item<double>() == -1.0);
  CHECK(tensors_of(done[0]).at("images").sum().item<std::int64_t>() == 0);
  const auto alone = run_by_width({whole}, 1); // stacked inversions change nothing
  CHECK(same_bits(tensors_of(done[1]).at("images"), tensors_of(alone[0]).at("images")));
  CHECK(tensors_of(done[1]).at("objective")[1].item<double>() > 0.0);
}

// f(x) = 2 x^2: the first step is min(1, 1 /
// g
// ) rate, the next ones are Newton's times the rate.
TEST_CASE("L-BFGS takes the steps worked out by hand, also across a saved state") {
  lbfgs walk(at::tensor({1.0f}), 0.5);
  const auto gradient = [&] { return walk.x() * 4.0; };
  const auto value = [&] { return 2.0 * walk.x().square().item<double>(); };
  for (const double expected : {0.5, 0.25, 0.125}) { // 1 - 4 / 8, then half of what is left
    CHECK(walk.advance_step(value(), gradient()));
    CHECK(walk.x().item<double>() == Approx(expected));
    lbfgs other;
    other.load(walk.save());
    walk = other;
  }
  std::int64_t steps = 0;
  for (bool continues = true; continues && steps < 100; ++steps)
    continues = walk.advance_step(value(), gradient());
  CHECK(steps == 14); // x = 1/8 / 2^13: gradient times direction, -4 x^2, is above -1e-9
}

TEST_CASE("accepted noise respects its bound, and is zero without variance") {
  rng_stream stream({.seed = 6, .purpose = first_method_purpose});
  const auto variances = at::linspace(0.01, 4.0, 30, at::kDouble);
  const double bound = 0.1 * variances.sum().item<double>();
  const double released_bound = 0.1 * variances.square().sum().item<double>();
  for (const double scale : {0.15, 1.0, 50.0})
    for (int i = 0; i < 20; ++i) {
      const auto printed = accepted_noise(variances, {.as_printed = true, .scale = scale}, stream);
      CHECK(printed.norm().item<double>() <= bound);
      const auto released = accepted_noise(variances, {.as_printed = false, .scale = scale}, stream);
      CHECK(released.square().sum().item<double>() <= released_bound);
    }
  CHECK(accepted_noise(at::zeros({4}, at::kDouble), {}, stream).abs().sum().item<double>() == 0.0);
}

TEST_CASE("a model is scored by its head on noisy features, which equal the features without variance") {
  const auto features = at::tensor({1.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f}).view({4, 2});
  const auto truth = at::tensor(std::vector<std::int64_t>{0, 1, 0, 0}), head = at::eye(2), bias = at::zeros({2});
  const rng_key key{.seed = 1, .purpose = first_method_purpose};
  CHECK(monitor_score(features, truth, head, bias, {.copies = 0}, key) == 0.75);
  const auto apart = at::tensor(std::vector<std::int64_t>{0, 1, 0, 1});
  CHECK(monitor_score(features, apart, head, bias, {.copies = 5}, key) == 1.0); // each class is one point
  const auto variances = variances_by_class(features, truth);
  CHECK(variances[0][0].item<double>() == Approx(1.0 / 3.0)); // of 1, 1, 0
  CHECK(variances[1].abs().sum().item<double>() == 0.0);      // a single row
}
