/// function_layers: adds layers that LibTorch's operators compute, for nets that users define.
#pragma once
#include "runtime/models/network_builder.hpp"
namespace mneme {

/// Options of add_grouped_convolution(); kernel, stride, padding and dilation in pixels.
struct grouped_convolution_options {
  std::int64_t filters = 0, kernel = 3, stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1; ///< Number of groups of filters, each of which reads its own group of channels. Divides the
                           ///< numbers of filters and channels.
  bool bias = true;
};
/// Adds a convolution with groups or a dilation, initialized as in PyTorch. @pre it is not the first layer
void add_grouped_convolution(network_builder& to, const std::string& name, const grouped_convolution_options& layer);
/// Adds the mean over square windows, where the border counts as zeros. @param window, stride, padding in pixels
void add_average_pool(network_builder& to, std::int64_t window, std::int64_t stride, std::int64_t padding);

/// Elementwise functions, as in PyTorch.
enum class value_function : std::uint8_t { relu6, hardswish, hardsigmoid, mish, softplus, elu, gelu_tanh };
/// @param alpha factor of negative values, used by elu only
void add_value_function(network_builder& to, value_function kind, double alpha = 1.0);

/// Adds a trained vector for each position of a token: the parameter `name`, [1, tokens, width], N(0, 0.02^2).
void add_positions(network_builder& to, const std::string& name);
/// Adds root mean square normalization over the last axis (Zhang and Sennrich 2019, eq. 4), with a weight.
void add_rms_norm(network_builder& to, const std::string& name, double epsilon);

} // namespace mneme
