/// gradient_encoder: the small random net in which GLFC's and LGA's clients take the gradients of their prototypes.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/method/program.hpp"
#include <array>
namespace mneme {

// Axes: K images; C channels, H height, W width of an image; L classes.

/// The encoder Gamma: three convolutions of 5 x 5 and 12 filters and a linear layer, with sigmoids between them. One
/// instance is drawn for a run, known to clients and proxy, and never trained.
class gradient_encoder {
public:
  static constexpr std::int64_t kernel = 5, filters = 12;
  struct convolution {
    std::int64_t channels = 0, stride = 1, padding = 2;
  };
  /// Height or width of what a convolution makes of an image with `extent`.
  [[nodiscard]] static std::int64_t extent_behind(std::int64_t extent, const convolution& layer);
  /// Strides and padding that leave 8 x 8 pixels of 32, 64 and 84; of others, strides near them.
  gradient_encoder(std::array<std::int64_t, 3> image, std::int64_t classes);
  [[nodiscard]] std::int64_t size() const; ///< All parameters.
  /// Every weight and bias from U(-0.5, 0.5), flat: [size()] float32.
  [[nodiscard]] at::Tensor drawn(const rng_key& stream) const;
  /// "1.weight", "1.bias", ... "4.bias", with the shapes of the eight tensors.
  [[nodiscard]] const std::vector<declared_tensor>& tensors() const noexcept { return tensors_; }
  /// Gradients of softmax cross-entropy in all tensors, of each image by itself, in the order of tensors(): [K, ...].
  /// Differentiable in the images; the bits of one do not depend on the others.
  /// @param weights [size()] @param images [K, C, H, W] @param labels [K] int64
  [[nodiscard]] std::vector<at::Tensor> gradients(const at::Tensor& weights, const at::Tensor& images,
                                                  const at::Tensor& labels) const;
  [[nodiscard]] std::array<std::int64_t, 3> image() const noexcept { return image_; }
  [[nodiscard]] std::int64_t classes() const noexcept { return classes_; }
  [[nodiscard]] const std::array<convolution, 3>& convolutions() const noexcept { return layers_; }

private:
  std::array<std::int64_t, 3> image_;
  std::int64_t classes_, features_ = 0;
  std::array<convolution, 3> layers_{};
  std::vector<declared_tensor> tensors_;
};

/// The label behind gradients of one image: features of a sigmoid are positive, so of the last layer's rows that of the
/// label alone has a negative sum (Zhao et al. 2020, iDLG). @param last_weight [L, features]
[[nodiscard]] std::int64_t label_of_gradients(const at::Tensor& last_weight);

} // namespace mneme
