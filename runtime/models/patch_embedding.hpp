/// patch_embedding: the first layers of a vision transformer, which convert images to tokens.
#pragma once
#include "runtime/models/function_layer.hpp"
namespace mneme {

/// Resizes input images [channels, height, width] like PyTorch's interpolate(): bilinear, without aligned corners and
/// without antialiasing.
class resize_layer final : public function_layer {
public:
  resize_layer(const image_shape& in, std::int64_t height, std::int64_t width)
      : in_(in), out_{height, width, in.channels} {}
  [[nodiscard]] std::int64_t width(class_range) const override { return out_.floats(); }
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  image_shape in_, out_;
};

/// Computes a class token, which all images share, and one token per patch, a linear map of the patch's pixels. A
/// trained vector is added at each position (Dosovitskiy et al. 2021, eq. 1).
class patch_embedding_layer final : public function_layer {
public:
  struct shape {
    image_shape in{};
    std::int64_t patch = 16, channels = 768;
    std::int64_t class_offset = 0, position_offset = 0, weight_offset = 0;
    std::int64_t bias_offset = -1; ///< -1: the linear map has no bias.
  };
  explicit patch_embedding_layer(const shape& sizes) : shape_(sizes) {}
  [[nodiscard]] std::int64_t patches() const { return shape_.in.pixels() / (shape_.patch * shape_.patch); }
  [[nodiscard]] std::int64_t tokens() const { return 1 + patches(); }
  [[nodiscard]] std::int64_t width(class_range) const override { return tokens() * shape_.channels; }
  [[nodiscard]] bool depends_on_row_count() const override { return true; }
  /// @param in [K, B, channels of the image * height * width]. Returns [K, B, tokens() * channels of a token].
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;

private:
  shape shape_;
};

} // namespace mneme
