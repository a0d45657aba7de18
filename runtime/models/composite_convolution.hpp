/// composite_convolution: convolutions by LibTorch's operators, one model at a time.
#pragma once
#include "runtime/models/layer.hpp"
namespace mneme {

/// Convolutions that the Winograd kernels do not compute. On a CPU these are convolutions of other shapes; oneDNN
/// computes them, or runtime/portable/convolutions.hpp in portable arithmetic. On a GPU these are all convolutions;
/// cuDNN computes them. function() uses this struct for autograd on all devices.
struct composite_convolution {
  image_shape in{}, out{};
  std::int64_t kernel = 1, stride = 1, padding = 0;
  std::int64_t weight_offset = 0, bias_offset = -1; ///< Offsets within a model's weights [P]; bias -1: none.
  activation after = activation::none;

  /// @param in [K, B, floats of an input image] @param out [K, B, floats of an output image], overwritten
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const;
  void backward(const layer_pass& pass, const kernel_layer::backward_data& data, const gradient_sink& sink) const;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const;

private:
  [[nodiscard]] bool biased() const { return bias_offset >= 0; }
  /// Model k's filters, stored as [kernel, kernel, in, out channels], as [out, in channels, kernel, kernel] for
  /// LibTorch. On a CPU they are a channels-last copy in the pass's memory, which oneDNN reads without another copy.
  [[nodiscard]] at::Tensor filters_of(const layer_pass& pass, std::int64_t k) const;
  /// Returns the gradient of filters_of() in the storage order of the weights.
  [[nodiscard]] static at::Tensor in_weight_order(const layer_pass& pass, const at::Tensor& d_filters);
  [[nodiscard]] at::Tensor applied(const at::Tensor& images, const at::Tensor& filters, const at::Tensor& bias) const;
};

} // namespace mneme
