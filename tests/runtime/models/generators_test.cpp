// A net that maps vectors to images, compared with PyTorch's layers with equal weights.
#include "runtime/models/image_layers.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/nets.hpp"
using namespace mneme;
using namespace mneme::test;

// Axes: K models, B rows, P weights.

namespace {

constexpr std::int64_t nets = 3, rows = 4, width = 10;

/// Maps 10 numbers to images of 2 channels and 12 x 8 pixels, with the layers and activations of DCGAN (Radford et al.
/// 2016) and of upsampling generators.
model_ref generator() {
  network_builder net("generator", shape3{1, 1, width});
  net.add_linear("fc", 6 * 3 * 2, activation::relu);
  add_images(net, 6, 3, 2);
  net.add_normalization("bn1", 0, activation::none);
  add_transposed_convolution(net, "up1", {.filters = 5, .after = activation::leaky});
  add_upsampling(net, 12, 8, upsampling::nearest);
  add_convolution(net, "conv", {.filters = 3, .padding = 1, .after = activation::silu});
  net.expose_map("conv");
  add_upsampling(net, 6, 4, upsampling::bilinear);
  add_transposed_convolution(net, "up2", {.filters = 2, .bias = false, .after = activation::tanh});
  net.end_headless();
  return net.build();
}

/// The same net with PyTorch's layers, [B, channels, height, width].
at::Tensor reference(const model& net, const at::Tensor& flat, const at::Tensor& z) {
  const auto of = [&](const std::string& name) {
    for (const auto& parameter : net.layout())
      if (parameter.name == name)
        return as_in_files(flat, parameter);
    FAIL(name);
    return at::Tensor{};
  };
  auto x = at::relu(at::linear(z, of("fc.weight"), of("fc.bias"))).view({-1, 6, 3, 2});
  const auto mean = of("bn1.running_mean").detach().clone(), variance = of("bn1.running_var").detach().clone();
  x = at::batch_norm(x, of("bn1.weight"), of("bn1.bias"), mean, variance, true, 0.1, 1e-5, false);
  x = at::leaky_relu(at::conv_transpose2d(x, of("up1.weight"), of("up1.bias"), 2, 1));
  x = at::silu(at::conv2d(at::upsample_nearest2d(x, {12, 8}), of("conv.weight"), of("conv.bias"), 1, 1));
  return at::tanh(at::conv_transpose2d(at::upsample_bilinear2d(x, {6, 4}, false), of("up2.weight"), {}, 2, 1));
}

at::Tensor weights_for(const model& net) {
  std::vector<at::Tensor> made;
  for (std::uint64_t k = 0; k < nets; ++k)
    made.push_back(initial_weights(net, k));
  return at::stack(made);
}

/// Features [B, pixels * channels] as images [B, channels, height, width].
at::Tensor images_of(const at::Tensor& features) { return features.view({-1, 12, 8, 2}).permute({0, 3, 1, 2}); }

} // namespace

TEST_CASE("a generator's images and gradients equal those of PyTorch's layers", "[models]") {
  at::set_num_threads(1);
  const auto net = generator();
  CHECK(net->feature_width() == 12 * 8 * 2);
  const auto weights = weights_for(*net), z = drawn({nets, rows, 1, 1, width}, 1);
  const auto d_features = drawn({nets, rows, net->feature_width()}, 2);
  auto moved = weights.clone();
  const training_mode training;
  tape kept;
  const auto features = net->forward(moved, z, {}, &kept, &training).features.clone();
  auto gradients = at::zeros_like(weights);
  net->backward(moved, kept, {}, {}, d_features, {}, {gradients});
  const auto seen = net->differentiable(weights, z, {}, {.training = &training, .statistics = true});
  CHECK(largest_difference(seen.features.contiguous(), features) < 1e-6);
  CHECK(largest_difference(with_updated_running_stats(weights, seen.statistics), moved) < 1e-6);
  for (std::int64_t k = 0; k < nets; ++k) {
    const auto flat = weights[k].clone().set_requires_grad(true);
    const auto images = reference(*net, flat, z[k].view({rows, width}));
    CHECK(largest_difference(images_of(features[k]).contiguous(), images.detach().contiguous()) < 1e-6);
    (images * images_of(d_features[k])).sum().backward();
    for (const auto& piece : trained_segments(*net, {}))
      CHECK(largest_difference(gradients[k].narrow(0, piece.offset, piece.size).contiguous(),
                               flat.grad().narrow(0, piece.offset, piece.size).contiguous()) < 2e-5);
  }
}

TEST_CASE("a generator's bits do not depend on the stack or on the way it is differentiated", "[models]") {
  at::set_num_threads(1);
  const auto net = generator();
  const auto weights = weights_for(*net), z = drawn({nets, rows, 1, 1, width}, 1);
  const training_mode training;
  const auto slope = [&](std::int64_t first, std::int64_t count) {
    const auto own = weights.narrow(0, first, count).clone().set_requires_grad(true);
    const auto seen = net->differentiable(own, z.narrow(0, first, count), {}, {.training = &training});
    return torch::autograd::grad({seen.features.square().sum()}, {own})[0];
  };
  const auto together = slope(0, nets);
  for (std::int64_t k = 0; k < nets; ++k)
    CHECK(same_bits(slope(k, 1)[0], together[k]));
}

TEST_CASE("second derivatives of a generator equal finite differences in float64", "[models]") {
  at::set_num_threads(1);
  const auto net = generator();
  const auto weights = weights_for(*net).narrow(0, 0, 1).to(at::kDouble);
  const auto z = drawn({1, rows, 1, 1, width}, 1).to(at::kDouble), direction = drawn(z.sizes(), 2).to(at::kDouble);
  const training_mode training;
  const auto along = drawn(weights.sizes(), 3).to(at::kDouble);
  const auto derivative_at = [&](double step, bool again) { // derivative along `along`, and its gradient by z
    const auto own = weights.clone().set_requires_grad(true);
    const auto from = (z + step * direction).set_requires_grad(true);
    const auto seen = net->differentiable(own, from, {}, {.training = &training});
    const auto value = (torch::autograd::grad({seen.features.square().sum()}, {own}, {}, true, true)[0] * along).sum();
    return again ? (torch::autograd::grad({value}, {from})[0] * direction).sum().item<double>() : value.item<double>();
  };
  const double difference = (derivative_at(1e-6, false) - derivative_at(-1e-6, false)) / 2e-6;
  CHECK(std::abs(derivative_at(0.0, true) - difference) < 1e-5 * std::max(1.0, std::abs(difference)));
}

TEST_CASE("transposed convolutions are initialized like PyTorch's", "[models]") {
  const auto net = generator();
  for (const auto& parameter : net->layout())
    if (parameter.name == "up1.weight") { // the fan is that of the second axis: 5 channels of 4 x 4
      CHECK(parameter.shape == std::vector<std::int64_t>{6, 5, 4, 4});
      CHECK(parameter.bound == 1.0 / std::sqrt(80.0));
    }
}
