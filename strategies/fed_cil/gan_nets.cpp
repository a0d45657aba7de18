#include "strategies/fed_cil/gan_nets.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/function.hpp"
#include "runtime/models/image_layers.hpp"
#include "strategies/shared/image_generator.hpp"
#include <ATen/ATen.h>
#include <fmt/format.h>
namespace mneme {
namespace {

model_ref generator_of_features(const gan_shape& shape) {
  const auto in = shape.code();
  network_builder net(fmt::format("feature generator {}-{}-{}", in, shape.generator_width, shape.features),
                      std::array<std::int64_t, 3>{1, 1, in});
  net.add_linear("generator.fc1", shape.generator_width, activation::relu);
  net.add_linear("generator.fc2", shape.features, activation::none);
  net.end_headless();
  return net.build();
}

model_ref critic_of_features(const gan_shape& shape) {
  network_builder net(fmt::format("feature critic {}-{}-{}+1", shape.features, shape.critic_width, shape.classes),
                      std::array<std::int64_t, 3>{1, 1, shape.features});
  net.add_linear("critic.fc1", shape.critic_width, activation::leaky);
  net.add_head("critic.fc2", shape.classes + 1);
  return net.build();
}

/// The official Generator (gan.py:82): a linear layer, three transposed convolutions that double the sides, each after
/// batch normalization and ReLU, a fourth that keeps the sides, and tanh.
model_ref generator_of_images(const gan_shape& shape) {
  const auto [channels, height, width] = shape.image;
  const auto last = shape.generator_width;
  network_builder net(fmt::format("image generator {}-{} {}x{}x{}", shape.code(), last, channels, height, width),
                      std::array<std::int64_t, 3>{1, 1, shape.code()});
  net.add_linear("generator.fc", 8 * last * (height / 8) * (width / 8), activation::none);
  add_images(net, 8 * last, height / 8, width / 8);
  net.add_normalization("generator.bn0", 0, activation::relu);
  for (const auto layer : {1, 2, 3}) {
    add_transposed_convolution(net, fmt::format("generator.deconv{}", layer), {.filters = (8 * last) >> layer});
    net.add_normalization(fmt::format("generator.bn{}", layer), 0, activation::relu);
  }
  add_transposed_convolution(net, "generator.deconv4",
                             {.filters = channels, .kernel = 3, .stride = 1, .after = activation::tanh});
  net.end_headless();
  return net.build();
}

/// The official Critic (gan.py:16): three convolutions that halve the sides, with leaky ReLU. Its heads fc_aux and fc
/// are one head in mneme. The official class declares batch normalizations, but does not use them.
model_ref critic_of_images(const gan_shape& shape) {
  const auto [channels, height, width] = shape.image;
  network_builder net(
      fmt::format("image critic {} {}x{}x{} {}+1", shape.critic_width, channels, height, width, shape.classes),
      shape.image);
  for (const auto layer : {1, 2, 3})
    add_convolution(net, fmt::format("critic.conv{}", layer),
                    {.filters = shape.critic_width << (layer - 1),
                     .kernel = 4,
                     .stride = 2,
                     .padding = 1,
                     .after = activation::leaky});
  add_flat_rows(net);
  net.add_head("critic.fc", shape.classes + 1);
  return net.build();
}

} // namespace

feature_gan::feature_gan(const gan_shape& shape) : shape_(shape) {
  MNEME_CHECK(shape.image[1] % 8 == 0 && shape.image[2] % 8 == 0, shape.image[1], shape.image[2]);
  generator_ = shape.of_images() ? generator_of_images(shape) : generator_of_features(shape);
  critic_ = shape.of_images() ? critic_of_images(shape) : critic_of_features(shape);
}

at::Tensor feature_gan::codes(const std::vector<std::int64_t>& labels, const rng_key& key) const {
  const auto width = shape_.code(), one_hot = shape_.overwrites ? 0 : shape_.latent;
  auto codes = at::zeros({std::ssize(labels), width}, at::kFloat);
  auto* row = codes.mutable_data_ptr<float>();
  rng_stream draw(key);
  for (const auto label : labels) {
    for (std::int64_t z = 0; z < shape_.latent; ++z)
      row[z] = static_cast<float>(draw.normal());
    if (shape_.overwrites)
      std::fill_n(row, shape_.classes, 0.0F);
    row[one_hot + label] = 1.0F;
    row += width;
  }
  return codes;
}

at::Tensor feature_gan::rows(const at::Tensor& generator, const at::Tensor& codes) const {
  const training_mode by_batch;
  const auto generated =
      generator_->differentiable(generator, codes.unflatten(2, {1, 1, -1}), {}, {.training = &by_batch});
  if (!shape_.of_images())
    return generated.features;
  const auto by_channel = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).view({-1, 1}).to(generator.device());
  };
  const auto pixels = (images_of(generated.features, shape_.image).flatten(3) + 1) * 127.5; // [-1, 1] to [0, 255]
  return (pixels * by_channel(shape_.scale) + by_channel(shape_.shift)).flatten(2);
}

at::Tensor normal_start(const model& net, std::uint64_t seed) {
  auto flat = at::empty({net.size()}, at::kFloat);
  for (auto entry : net.layout()) {
    if (entry.bound > 0.0 || entry.deviation > 0.0) {
      entry.bound = 0.0;
      entry.deviation = entry.shape.size() > 1 ? 0.02 : 0.0;
    }
    put_as_in_files(flat, entry, initial_values(entry, seed));
  }
  return flat;
}

} // namespace mneme
