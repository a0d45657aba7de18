/// Images to tokens: the first layers of a vision transformer.
#pragma once
#include "runtime/models/layer.hpp"
#include <vector>
namespace mneme {

/// Images of data sets, [channels, height, width], in another size: bilinear, corners not aligned, no antialiasing, as
/// PyTorch's interpolate() does it by default.
class resize_layer final : public layer {
public:
  resize_layer(const image_shape& in, std::int64_t height, std::int64_t width);
  [[nodiscard]] std::int64_t width(class_range) const override { return out_.floats(); }
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  /// @pre the gradient of the images is not needed
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;
  void composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const;

private:
  /// Between which two lines or pixels one of the result lies, and how much it has of the second.
  struct mixture {
    std::int64_t first = 0, second = 0;
    float share = 0.0F;
  };
  static std::vector<mixture> mixtures(std::int64_t from, std::int64_t to);
  void resize_channel(const float* from, float* to, float* line) const;

  image_shape in_, out_;
  std::vector<mixture> lines_, pixels_;
};

/// A token per patch, a linear map of its pixels, behind a class token that is the same for all images; then each
/// position adds a vector of its own (Dosovitskiy et al. 2021, eq. 1).
class patch_embedding_layer final : public layer {
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
  /// in [K, B, channels of the image * height * width]
  void forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out, at::Tensor& kept) const override;
  /// @pre the gradient of the images is not needed
  void backward(const layer_pass& pass, const backward_data& data, const gradient_sink& sink) const override;
  [[nodiscard]] at::Tensor function(const function_pass& pass, const at::Tensor& in) const override;
  void composite_forward(const layer_pass& pass, const at::Tensor& in, at::Tensor& out) const;

private:
  [[nodiscard]] std::int64_t patch_floats() const { return shape_.in.channels * shape_.patch * shape_.patch; }
  [[nodiscard]] at::Tensor patches_of(const at::Tensor& images) const;

  shape shape_;
};

} // namespace mneme
