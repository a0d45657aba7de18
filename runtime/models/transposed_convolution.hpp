/// transposed_convolution_layer: a convolution's way back as a way forward, which enlarges images.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// PyTorch's ConvTranspose2d over channels-last images (Zeiler et al. 2010, "Deconvolutional Networks"): what a
/// convolution of the same kernel, stride and padding hands back to its input. Filters lie [kernel, kernel, out
/// channels, in channels] in memory.
class transposed_convolution_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
    std::int64_t further_px = 0; ///< Pixels added below and to the right; below `stride`. PyTorch: output_padding.
    std::int64_t weight_offset = 0, bias_offset = -1; ///< -1: no bias
    activation after = activation::none;              ///< Built in.
  };
  explicit transposed_convolution_layer(const shape& sizes);
  [[nodiscard]] image_shape out_shape() const;
  [[nodiscard]] std::int64_t width(class_range) const override { return out_shape().floats(); }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
