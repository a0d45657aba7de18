/// composite_convolution: convolutions by LibTorch's operators, one model after the other.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Convolutions that Winograd's kernels do not compute: other shapes (oneDNN, or runtime/portable/convolutions.hpp in
/// portable arithmetic), on a GPU (cuDNN), and as a function for autograd.
struct composite_convolution {
  image_shape in{}, out{};
  std::int64_t kernel = 1, stride = 1, padding = 0;
  std::int64_t weight_offset = 0, bias_offset = -1; ///< -1: no bias
  activation after = activation::none;

  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const;
  void backward(const layer_pass& pass, const kernel_layer::backward_data& data, const gradient_sink& sink) const;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const;

private:
  [[nodiscard]] bool biased() const { return bias_offset >= 0; }
  /// Model k's filters, in memory [kernel, kernel, in, out channels], as LibTorch takes them. On a CPU they are a copy
  /// in the memory of the pass, channels last, which oneDNN reads without another copy.
  [[nodiscard]] at::Tensor filters_of(const layer_pass& pass, std::int64_t k) const;
  /// The gradient of filters_of() in the order of the weights.
  [[nodiscard]] static at::Tensor in_weight_order(const layer_pass& pass, const at::Tensor& d_filters);
  [[nodiscard]] at::Tensor applied(const at::Tensor& images, const at::Tensor& filters, const at::Tensor& bias) const;
};

} // namespace mneme
