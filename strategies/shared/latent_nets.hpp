/// latent_nets: the three nets of a small latent diffusion model: an encoder of images, which stands for a captioner
/// and a text encoder; an autoencoder; and a denoiser of its latents (Rombach et al. 2022, "High-Resolution Image
/// Synthesis with Latent Diffusion Models", in small).
#pragma once
#include "strategies/shared/parameter_list.hpp"
#include <array>
namespace mneme {

// Axes: n images, C channels, H height, W width; E numbers of an embedding, L of a latent, U units of the denoiser;
// K conditions in a stack.

/// Images whose sides are multiples of 4 and at least 8 pixels go through convolutions, all others are flat.
struct latent_shape {
  std::array<std::int64_t, 3> image{}; ///< C, H, W
  std::int64_t kinds = 0;              ///< What the encoder learns to tell apart.
  std::int64_t embedding = 512, latent = 64, units = 320, blocks = 3;
  [[nodiscard]] bool convolves() const noexcept {
    return image[1] >= 8 && image[2] >= 8 && image[1] % 4 == 0 && image[2] % 4 == 0;
  }
  [[nodiscard]] std::int64_t pixels() const noexcept { return image[0] * image[1] * image[2]; }
  [[nodiscard]] std::string identity() const;
};

/// Images to vectors of length 1. Behind it a head that tells kinds apart, which is of use while it is trained.
class image_encoder {
public:
  explicit image_encoder(const latent_shape& shape);
  [[nodiscard]] const parameter_list& parameters() const noexcept { return list_; }
  /// [n, E]. @param images [n, C, H, W] as nets see them
  [[nodiscard]] at::Tensor embeddings(const at::Tensor& flat, const at::Tensor& images) const;
  /// [n, kinds], of eight times the embeddings.
  [[nodiscard]] at::Tensor logits(const at::Tensor& flat, const at::Tensor& embeddings) const;

private:
  latent_shape shape_;
  parameter_list list_;
  std::size_t head_ = 0;
};

/// Images to normals over latents, and latents back to images (Kingma and Welling 2014).
class image_autoencoder {
public:
  explicit image_autoencoder(const latent_shape& shape);
  [[nodiscard]] const parameter_list& parameters() const noexcept { return list_; }
  /// Means and log variances, each [n, L], the latter within -10 .. 4. @param pixels [n, C, H, W] in [0, 1]
  struct normals {
    at::Tensor mean{}, log_variance{};
  };
  [[nodiscard]] normals encoded(const at::Tensor& flat, const at::Tensor& pixels) const;
  /// Logits of pixels, [n, C, H, W]. @param latents [n, L]
  [[nodiscard]] at::Tensor decoded(const at::Tensor& flat, const at::Tensor& latents) const;

private:
  latent_shape shape_;
  parameter_list list_;
  std::size_t decoder_ = 0;
};

/// Predicts velocities (Salimans and Ho 2022) of noisy latents, told the time and a condition: residual blocks whose
/// normalised inputs are scaled and shifted by both (Perez et al. 2018, FiLM). Blocks begin as identities.
class latent_denoiser {
public:
  explicit latent_denoiser(const latent_shape& shape);
  [[nodiscard]] const parameter_list& parameters() const noexcept { return list_; }

  /// x [K, m, in], w [out, in], b [out] to [K, m, out].
  using product = at::Tensor (*)(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
  /// LibTorch's linear layer.
  [[nodiscard]] static at::Tensor plain(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
  /// The same, with bits of each of K that do not depend on the others (runtime/models/function.hpp).
  [[nodiscard]] static at::Tensor stacked(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);

  /// What a condition becomes, [K, m, U]. @param embeddings [K, m, E]
  [[nodiscard]] at::Tensor condition(const at::Tensor& flat, const at::Tensor& embeddings, product by) const;
  /// What stands for no condition, [U].
  [[nodiscard]] at::Tensor no_condition(const at::Tensor& flat) const;
  /// What times become, [times, U].
  [[nodiscard]] at::Tensor time(const at::Tensor& flat, const std::vector<std::int64_t>& times) const;
  /// Velocities [K, m, L]. @param x [K, m, L] @param told [K, m or 1, U] condition + time
  [[nodiscard]] at::Tensor velocities(const at::Tensor& flat, const at::Tensor& x, const at::Tensor& told,
                                      product by) const;

private:
  latent_shape shape_;
  parameter_list list_;
  std::size_t time_ = 0, condition_ = 0, none_ = 0, in_ = 0, blocks_ = 0, out_ = 0;
};

} // namespace mneme
