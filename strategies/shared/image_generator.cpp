#include "strategies/shared/image_generator.hpp"
#include "runtime/models/image_layers.hpp"
#include "runtime/models/parameter_choice.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters) {
  const auto [channels, height, width] = shape;
  network_builder net(fmt::format("image generator {}-{} {}x{}x{}", inputs, filters, channels, height, width),
                      std::array<std::int64_t, 3>{1, 1, inputs});
  if (height % 4 != 0 || width % 4 != 0) {
    net.add_linear("fc1", 4 * filters, activation::relu);
    net.add_linear("fc2", channels * height * width, activation::sigmoid);
    net.end_headless();
    return net.build();
  }
  constexpr double slope = 0.2;
  net.add_linear("fc1", 2 * filters * (height / 4) * (width / 4), activation::none);
  add_images(net, 2 * filters, height / 4, width / 4);
  net.add_normalization("bn1", 0, activation::none);
  add_upsampling(net, height / 2, width / 2, upsampling::nearest);
  add_convolution(net, "conv1", {.filters = 2 * filters, .padding = 1, .bias = false});
  net.add_normalization("bn2", 0, activation::none);
  net.add_activation(activation::leaky, slope);
  add_upsampling(net, height, width, upsampling::nearest);
  add_convolution(net, "conv2", {.filters = filters, .padding = 1, .bias = false});
  net.add_normalization("bn3", 0, activation::none);
  net.add_activation(activation::leaky, slope);
  add_convolution(net, "conv3", {.filters = channels, .padding = 1, .after = activation::sigmoid});
  net.end_headless();
  return net.build();
}

at::Tensor images_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape) {
  const auto [channels, height, width] = shape;
  if (height % 4 != 0 || width % 4 != 0) // linear layers output channels first
    return features.unflatten(2, {channels, height, width});
  return features.unflatten(2, {height, width, channels}).permute({0, 1, 4, 2, 3});
}

at::Tensor crop_and_flip(const at::Tensor& images, const at::Tensor& views) {
  const auto rows = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
  const auto padded_width = width + 2 * view_padding;
  const auto padded = at::constant_pad_nd(images, {view_padding, view_padding, view_padding, view_padding});
  const auto columns = at::arange(width, at::kLong).view({1, 1, width});
  const auto part = [&](std::int64_t i) { return views.select(1, i).view({rows, 1, 1}); };
  const auto across = at::where(part(2) > 0, width - 1 - columns, columns) + part(1);
  const auto down = at::arange(height, at::kLong).view({1, height, 1}) + part(0);
  const auto places = (down * padded_width + across).view({rows, 1, height * width}).to(images.device());
  return padded.flatten(2).gather(2, places.expand({rows, channels, height * width})).view_as(images);
}

at::Tensor draw_normal(at::IntArrayRef sizes, const rng_key& key) {
  auto values = at::empty(sizes, at::kFloat);
  rng_stream draw(key);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(draw.normal());
  return values;
}

at::Tensor draw_crops(std::int64_t rows, rng_stream& draw) {
  auto views = at::empty({rows, 3}, at::kLong);
  auto* at = views.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < rows; ++i, at += 3) {
    at[0] = static_cast<std::int64_t>(draw.below(2 * view_padding + 1));
    at[1] = static_cast<std::int64_t>(draw.below(2 * view_padding + 1));
    at[2] = static_cast<std::int64_t>(draw.below(2));
  }
  return views;
}

at::Tensor first_by_name(std::int64_t images, std::int64_t batch, std::int64_t count) {
  std::vector<std::pair<std::string, std::int64_t>> named;
  for (std::int64_t i = 0; i < images; ++i)
    named.emplace_back(fmt::format("{}-{}.png", i / batch, i % batch), i);
  std::sort(named.begin(), named.end());
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < std::min(count, images); ++i)
    places.push_back(named[static_cast<std::size_t>(i)].second);
  return at::tensor(places, at::kLong);
}

diagnostics validate_generation(const method_setup& setup) {
  diagnostics errors;
  if (!setup.net->couples_batch_rows())
    errors.push_back({"model.name", fmt::format("'{}' has no batch norms, whose statistics the generator matches; "
                                                "expected a residual net with norm = \"batch\"",
                                                setup.net->identity())});
  if (!setup.has_images())
    errors.push_back(
        {"data.name", "the generator makes images, but the data are rows of tokens or numbers; expected images"});
  if (setup.trainable != trainable_part::all)
    errors.push_back({"model.trainable", "model.trainable = \"head\": the method trains whole nets; expected \"all\""});
  else if (has_held_parameters(*setup.net))
    errors.push_back({"model.frozen", "model.frozen: the method trains whole nets; expected no frozen parameters"});
  for (std::size_t t = 1; t < setup.task_classes.size(); ++t)
    if (setup.task_classes[t].low != setup.task_classes[t - 1].high) {
      errors.push_back({"tasks.kind", "tasks.kind: the generator makes rows of old classes, but these tasks repeat "
                                      "their classes; expected \"class-incremental\""});
      break;
    }
  return errors;
}

} // namespace mneme
