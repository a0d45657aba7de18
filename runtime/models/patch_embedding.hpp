/// Images to tokens: the first layers of a vision transformer.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// Images of data sets, [channels, height, width], in another size: bilinear, corners not aligned, no antialiasing, as
/// PyTorch's interpolate() does it by default.
class resize_layer final : public function_layer {
public:
  resize_layer(const image_shape& in, std::int64_t height, std::int64_t width)
      : in_(in), out_{height, width, in.channels} {}
  [[nodiscard]] std::int64_t width(class_range) const override { return out_.floats(); }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  image_shape in_, out_;
};

/// A token per patch, a linear map of its pixels, behind a class token that is the same for all images; then each
/// position adds a vector of its own (Dosovitskiy et al. 2021, eq. 1).
class patch_embedding_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t patch = 16, channels = 768;
    std::int64_t class_offset = 0, position_offset = 0, weight_offset = 0, bias_offset = 0;
  };
  explicit patch_embedding_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t patches() const { return shape_.in.pixels() / (shape_.patch * shape_.patch); }
  [[nodiscard]] std::int64_t tokens() const { return 1 + patches(); }
  [[nodiscard]] std::int64_t width(class_range) const override { return tokens() * shape_.channels; }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  /// in [K, B, channels of the image * height * width]
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
