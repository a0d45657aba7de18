#include "runtime/models/image_layers.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/convolution_layer.hpp"
#include "runtime/models/depthwise_layer.hpp"
#include "runtime/models/layout_layers.hpp"
#include "runtime/models/pooling.hpp"
#include "runtime/models/transposed_convolution.hpp"
#include <cmath>
namespace mneme {

void add_convolution(network_builder& to, const std::string& name, const convolution_options& layer) {
  if (to.cursor() == 0)
    to.add_node({.operation = std::make_unique<channels_last_layer>(to.shape_here())}, to.shape_here(), false);
  const auto in = to.shape_here();
  const auto fan_in = static_cast<double>(layer.kernel * layer.kernel * in.channels);
  const auto fan_out = static_cast<double>(layer.kernel * layer.kernel * layer.filters);
  const std::vector<std::int64_t> filters{layer.filters, in.channels, layer.kernel, layer.kernel};
  convolution_layer::shape shape{.in = in,
                                 .filters = layer.filters,
                                 .kernel = layer.kernel,
                                 .stride = layer.stride,
                                 .padding = layer.padding,
                                 .after = built_in(layer.after)};
  shape.weight_offset = to.add_parameter({.name = name + ".weight",
                                          .shape = filters,
                                          .bound = layer.he_normal ? 0.0 : 1.0 / std::sqrt(fan_in),
                                          .deviation = layer.he_normal ? std::sqrt(2.0 / fan_out) : 0.0,
                                          .view = filters,
                                          .order = {2, 3, 1, 0}});
  if (layer.bias)
    shape.bias_offset =
        to.add_parameter({.name = name + ".bias", .shape = {layer.filters}, .bound = 1.0 / std::sqrt(fan_in)});
  auto convolution = std::make_unique<convolution_layer>(shape);
  const auto out = convolution->out_shape();
  to.add_node({.operation = std::move(convolution)}, out, true);
  to.add_unless_built_in(layer.after);
}

void add_depthwise(network_builder& to, const std::string& name, std::int64_t kernel, std::int64_t stride) {
  const auto in = to.shape_here();
  const std::vector<std::int64_t> filters{in.channels, 1, kernel, kernel};
  const auto offset = to.add_parameter({.name = name + ".weight",
                                        .shape = filters,
                                        .deviation = std::sqrt(2.0 / static_cast<double>(kernel * kernel)),
                                        .view = filters,
                                        .order = {2, 3, 1, 0}});
  auto layer = std::make_unique<depthwise_layer>(
      depthwise_layer::shape{.in = in, .kernel = kernel, .stride = stride, .weight_offset = offset});
  const auto out = layer->out_shape();
  to.add_node({.operation = std::move(layer)}, out, true);
}

void add_relu6(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<relu6_layer>(in.floats())}, in, false);
}

void add_max_pool(network_builder& to, std::int64_t window, std::int64_t stride, std::int64_t padding) {
  auto pool = std::make_unique<max_pool_layer>(
      max_pool_layer::shape{.in = to.shape_here(), .window = window, .stride = stride, .padding = padding});
  const auto out = pool->out_shape();
  to.add_node({.operation = std::move(pool)}, out, false);
}

void add_mean_pool(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<mean_pool_layer>(in)}, {1, 1, in.channels}, false);
}

void add_subsampling(network_builder& to, std::int64_t stride, std::int64_t channels, std::int64_t first) {
  auto subsampling = std::make_unique<subsampling_layer>(to.shape_here(), stride, channels, first);
  const auto out = subsampling->out_shape();
  to.add_node({.operation = std::move(subsampling)}, out, false);
}

void add_flat_rows(network_builder& to) {
  const auto in = to.shape_here();
  to.add_node({.operation = std::make_unique<flat_rows_layer>(in, to.cursor() == 0)}, {1, 1, in.floats()}, false);
}

void add_images(network_builder& to, std::int64_t channels, std::int64_t height, std::int64_t width) {
  MNEME_CHECK(to.shape_here().floats() == channels * height * width, to.identity(), to.shape_here().floats());
  const image_shape images{height, width, channels};
  to.add_node({.operation = std::make_unique<channels_last_layer>(images)}, images, false);
}

void add_transposed_convolution(network_builder& to, const std::string& name, const transposed_options& layer) {
  const auto in = to.shape_here();
  MNEME_CHECK(to.cursor() > 0, to.identity()); // a net's input is channels first
  // PyTorch takes the fan in from the second axis, the output channels.
  const double bound = 1.0 / std::sqrt(static_cast<double>(layer.kernel * layer.kernel * layer.filters));
  const std::vector<std::int64_t> filters{in.channels, layer.filters, layer.kernel, layer.kernel};
  transposed_convolution_layer::shape shape{.in = in,
                                            .filters = layer.filters,
                                            .kernel = layer.kernel,
                                            .stride = layer.stride,
                                            .padding = layer.padding,
                                            .output_padding_px = layer.output_padding_px,
                                            .after = built_in(layer.after)};
  shape.weight_offset = to.add_parameter(
      {.name = name + ".weight", .shape = filters, .bound = bound, .view = filters, .order = {2, 3, 1, 0}});
  if (layer.bias)
    shape.bias_offset = to.add_parameter({.name = name + ".bias", .shape = {layer.filters}, .bound = bound});
  auto convolution = std::make_unique<transposed_convolution_layer>(shape);
  const auto out = convolution->out_shape();
  to.add_node({.operation = std::move(convolution)}, out, true);
  to.add_unless_built_in(layer.after);
}

void add_upsampling(network_builder& to, std::int64_t height, std::int64_t width, upsampling kind) {
  auto upsampling = std::make_unique<upsampling_layer>(to.shape_here(), height, width, kind);
  const auto out = upsampling->out_shape();
  to.add_node({.operation = std::move(upsampling)}, out, false);
}

} // namespace mneme
