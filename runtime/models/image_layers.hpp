/// image_layers: adds layers of images to a net. An image in a net has the shape {height, width, channels}.
#pragma once
#include "runtime/models/network_builder.hpp"
#include "runtime/models/upsampling.hpp"
namespace mneme {

/// Options of add_convolution(); kernel, stride and padding in pixels.
struct convolution_options {
  std::int64_t filters = 0, kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  activation after = activation::none;
  bool he_normal = false; ///< true: drawn from N(0, 2 / (kernel^2 filters)) (He et al. 2015, fan out). false: drawn as
                          ///< in PyTorch.
};
/// Adds a convolution and its activation. As a net's first layer, it converts the input to channels last.
void add_convolution(network_builder& to, const std::string& name, const convolution_options& layer);
/// Adds a depthwise convolution without bias. Padding is TensorFlow's "same": the result has ceil(size / stride) pixels
/// per axis. @pre it is not the first layer
void add_depthwise(network_builder& to, const std::string& name, std::int64_t kernel, std::int64_t stride);
void add_relu6(network_builder& to);
/// Adds max pooling over square windows. @param window, stride, padding in pixels
void add_max_pool(network_builder& to, std::int64_t window, std::int64_t stride, std::int64_t padding);
void add_mean_pool(network_builder& to);
/// Keeps every `stride`-th pixel and pads the channels with zeros.
/// @param channels channels of the result @param first index of the first input channel among them
void add_subsampling(network_builder& to, std::int64_t stride, std::int64_t channels, std::int64_t first = 0);
/// Converts the last value to flat rows in the order of files. Linear layers read images without this conversion.
void add_flat_rows(network_builder& to);

// Layers for generators, which turn vectors into images.

/// Converts the last value, a flat row in channels-first order, to images.
void add_images(network_builder& to, std::int64_t channels, std::int64_t height, std::int64_t width);
/// Options of add_transposed_convolution(); kernel, stride and padding in pixels.
struct transposed_options {
  std::int64_t filters = 0, kernel = 4, stride = 2, padding = 1;
  std::int64_t output_padding_px = 0; ///< PyTorch's output_padding, in pixels.
  bool bias = true;
  activation after = activation::none;
};
/// Adds a transposed convolution and its activation. @pre it is not the first layer
void add_transposed_convolution(network_builder& to, const std::string& name, const transposed_options& layer);
/// Resizes the last value's images. @param height, width of the result, in pixels
void add_upsampling(network_builder& to, std::int64_t height, std::int64_t width, upsampling kind);

} // namespace mneme
