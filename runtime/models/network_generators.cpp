// How a network is built from the layers of generators, which turn vectors into images.
#include "runtime/base/check.hpp"
#include "runtime/models/network.hpp"
#include "runtime/models/shortcut_layers.hpp"
#include "runtime/models/transposed_convolution.hpp"
#include <cmath>
namespace mneme {

void network::add_images(std::int64_t channels, std::int64_t height, std::int64_t width) {
  MNEME_CHECK(shape_here().floats() == channels * height * width, identity_, shape_here().floats());
  const image_shape images{height, width, channels};
  add_node({.operation = std::make_unique<channels_last_layer>(images)}, images, false);
}

void network::add_transposed_convolution(const std::string& name, const transposed_convolution& layer) {
  const auto in = shape_here();
  MNEME_CHECK(last_ > 0, identity_); // an input's channels come first
  // PyTorch takes the fan from the second axis, the results' channels.
  const double bound = 1.0 / std::sqrt(static_cast<double>(layer.kernel * layer.kernel * layer.filters));
  const std::vector<std::int64_t> filters{in.channels, layer.filters, layer.kernel, layer.kernel};
  transposed_convolution_layer::shape shape{.in = in,
                                            .filters = layer.filters,
                                            .kernel = layer.kernel,
                                            .stride = layer.stride,
                                            .padding = layer.padding,
                                            .further_px = layer.further_px,
                                            .after = built_in(layer.after)};
  shape.weight_offset = add_parameter(
      {.name = name + ".weight", .shape = filters, .bound = bound, .view = filters, .order = {2, 3, 1, 0}});
  if (layer.bias)
    shape.bias_offset = add_parameter({.name = name + ".bias", .shape = {layer.filters}, .bound = bound});
  auto convolution = std::make_unique<transposed_convolution_layer>(shape);
  const auto out = convolution->out_shape();
  add_node({.operation = std::move(convolution)}, out, true);
  add_unless_built_in(layer.after);
}

void network::add_upsampling(std::int64_t height, std::int64_t width, upsampling kind) {
  auto upsampling = std::make_unique<upsampling_layer>(shape_here(), height, width, kind);
  const auto out = upsampling->out_shape();
  add_node({.operation = std::move(upsampling)}, out, false);
}

} // namespace mneme
