/// gan_nets: generator and critic of an auxiliary-classifier GAN, for features or images, and their initial weights
/// (Odena, Olah and Shlens 2017, AC-GAN; Qi et al. 2023, FedCIL).
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: K calls of a batch, B rows of a step, D features, C classes of the run, Z numbers of a code, G weights of a
// generator, P weights of a critic.

/// Sizes of both nets.
struct gan_shape {
  std::int64_t features = 0, classes = 0;
  std::int64_t latent = 110;
  std::int64_t generator_width = 512, critic_width = 256; ///< Hidden units; for images, filters of the largest map.
  bool overwrites = false; ///< True: one-hot labels replace the first C numbers of noise. False: they follow the noise.
  /// Shape [C, H, W] of images, if the nets are convolutional and features are normalized pixels. Zeros if features
  /// come from a backbone.
  std::array<std::int64_t, 3> image{};
  std::vector<float> scale{}, shift{}; ///< [channels] input = v * scale + shift for a pixel v from 0 to 255.

  [[nodiscard]] std::int64_t code() const { return overwrites ? latent : latent + classes; } ///< Z
  [[nodiscard]] bool of_images() const { return image[0] > 0; }
};

/// Both nets. The critic's head has a row for each class of the run, and a last one for "real".
class feature_gan {
public:
  /// @pre height and width of images are divisible by 8
  explicit feature_gan(const gan_shape& shape);
  [[nodiscard]] const gan_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] const model_ref& generator() const noexcept { return generator_; }
  [[nodiscard]] const model_ref& critic() const noexcept { return critic_; }
  /// Draws codes [B, Z]: normal noise with one-hot labels. @param labels [B]
  [[nodiscard]] at::Tensor codes(const std::vector<std::int64_t>& labels, const rng_key& key) const;
  /// Generates rows [K, B, D]. Batch normalizations use the statistics of these rows.
  /// @param generator [K, G] @param codes [K, B, Z]
  [[nodiscard]] at::Tensor rows(const at::Tensor& generator, const at::Tensor& codes) const;

private:
  gan_shape shape_;
  model_ref generator_, critic_;
};

/// Draws initial weights as in the official code (serverbase.py:109): weights from N(0, 0.02^2), biases 0, and scales
/// of batch normalizations 1.
[[nodiscard]] at::Tensor normal_start(const model& net, std::uint64_t seed);

} // namespace mneme
