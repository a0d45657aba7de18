/// upsampling_layer: resizes images by nearest or bilinear interpolation.
#pragma once
#include "runtime/models/function_layer.hpp"
#include <vector>
namespace mneme {

/// Modes of PyTorch's interpolate() on channels-last images. nearest takes the pixel at the upper left corner of the
/// result pixel. bilinear does not align corners.
enum class upsampling : std::uint8_t { nearest, bilinear };

/// Images may also shrink, without antialiasing.
class upsampling_layer final : public function_layer {
public:
  upsampling_layer(const image_shape& in, std::int64_t height, std::int64_t width, upsampling kind);
  [[nodiscard]] const image_shape& out_shape() const noexcept { return out_; }
  [[nodiscard]] std::int64_t width(class_range) const override { return out_.floats(); }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  /// Two rows or columns of the source, and the share of the second one in the result.
  struct mixture {
    std::int64_t first = 0, second = 0;
    float share = 0.0F;
  };
  static std::vector<mixture> mixtures(std::int64_t from, std::int64_t to, upsampling kind);
  static at::Tensor matrix_of(const std::vector<mixture>& mixtures, std::int64_t from, const at::Tensor& like);

  image_shape in_, out_;
  std::vector<mixture> lines_, pixels_;
};

} // namespace mneme
