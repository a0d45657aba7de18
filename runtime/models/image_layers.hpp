/// image_layers: layers of images that are added to a net. A place of images has the shape {height, width, channels}.
#pragma once
#include "runtime/models/network_builder.hpp"
#include "runtime/models/upsampling.hpp"
namespace mneme {

struct convolution_options {
  std::int64_t filters = 0, kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  activation after = activation::none;
  bool he_normal = false; ///< Drawn from N(0, 2 / (kernel^2 filters)) (He et al. 2015, fan out), not as PyTorch does.
};
void add_convolution(network_builder& to, const std::string& name, const convolution_options& layer);
/// A convolution of every channel by itself, without bias; zeros around the image as TensorFlow's "same" has them, so
/// that `stride` divides its size. @pre it is not the first layer
void add_depthwise(network_builder& to, const std::string& name, std::int64_t kernel, std::int64_t stride);
void add_relu6(network_builder& to);
void add_max_pool(network_builder& to, std::int64_t window, std::int64_t stride, std::int64_t padding);
void add_mean_pool(network_builder& to);
/// Every `stride`-th pixel, zeros as further channels.
/// @param first where the given channels begin among `channels`
void add_subsampling(network_builder& to, std::int64_t stride, std::int64_t channels, std::int64_t first = 0);
/// What has been added last as flat rows in the order of files. Linear layers read images as they lie, without it.
void add_flat_rows(network_builder& to);

// Generators turn vectors into images.

/// What has been added last, a flat row, as images that lie channel by channel.
void add_images(network_builder& to, std::int64_t channels, std::int64_t height, std::int64_t width);
struct transposed_options {
  std::int64_t filters = 0, kernel = 4, stride = 2, padding = 1;
  std::int64_t further_px = 0; ///< PyTorch: output_padding.
  bool bias = true;
  activation after = activation::none;
};
/// @pre it is not the first layer
void add_transposed_convolution(network_builder& to, const std::string& name, const transposed_options& layer);
void add_upsampling(network_builder& to, std::int64_t height, std::int64_t width, upsampling kind);

} // namespace mneme
