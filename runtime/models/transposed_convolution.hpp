/// transposed_convolution_layer: a transposed convolution, which enlarges images.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// PyTorch's ConvTranspose2d on channels-last images (Zeiler et al. 2010, "Deconvolutional Networks"): the input
/// gradient of a convolution with the same kernel, stride and padding.
/// Filters are stored as [kernel, kernel, out channels, in channels].
class transposed_convolution_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t filters = 0, kernel = 1, stride = 1, padding = 0;
    std::int64_t output_padding_px =
        0; ///< PyTorch's output_padding: pixels added below and to the right, less than `stride`.
    std::int64_t weight_offset = 0, bias_offset = -1; ///< Offsets within a model's weights [P]; bias -1: none.
    activation after = activation::none;              ///< none or relu: is_built_in().
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
