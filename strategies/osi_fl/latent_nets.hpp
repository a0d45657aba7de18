/// latent_nets: the parts of a small latent diffusion model: an encoder of images, which stands for a captioner and a
/// text encoder; principal components, which stand for an autoencoder; and a denoiser of latents (Rombach et al. 2022,
/// "High-Resolution Image Synthesis with Latent Diffusion Models", in small).
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/base/tensor_map.hpp"
#include <algorithm>
#include <array>
#include <vector>
namespace mneme {

// Axes: n images, C channels, H height, W width, D pixels of all channels; E numbers of an embedding, L of a latent, U
// units of the denoiser; K conditions in a stack.

/// Parameters of a small net, side by side in one tensor. Filled once, then const. A program takes gradients by the
/// whole of it and reads its parts as views.
class parameter_list {
public:
  /// A parameter of this shape, drawn uniformly within +-bound; 0: it begins with zeros. Returns its place in parts().
  std::size_t add(std::vector<std::int64_t> shape, double bound);
  /// Weights [out, in] or [out, in, kernel, kernel] and biases [out] of a layer, drawn as PyTorch draws them: within
  /// 1 / sqrt(inputs of an output). Returns the place of the weights; the biases follow.
  std::size_t add_layer(const std::vector<std::int64_t>& shape, bool zeros = false);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// [size()] float32; a stream for each parameter.
  [[nodiscard]] at::Tensor initial(const rng_key& key) const;
  /// Views of `flat` [size()], in the order in which they were added; derivatives go through them.
  [[nodiscard]] std::vector<at::Tensor> parts(const at::Tensor& flat) const;

private:
  struct entry {
    std::vector<std::int64_t> shape{};
    std::int64_t size = 0;
    double bound = 0.0;
  };
  std::vector<entry> entries_;
  std::int64_t size_ = 0;
};

/// The encoder takes images whose sides are multiples of 4 and at least 8 pixels through convolutions, all others flat.
struct latent_shape {
  std::array<std::int64_t, 3> image{}; ///< C, H, W
  std::int64_t kinds = 0;              ///< What the encoder learns to tell apart.
  std::int64_t embedding = 512, units = 320, blocks = 3;
  std::int64_t latent_max = 96;
  /// L: no more than there are pixels.
  [[nodiscard]] std::int64_t latent() const noexcept { return std::min(latent_max, pixels()); }
  [[nodiscard]] bool convolves() const noexcept {
    return image[1] >= 8 && image[2] >= 8 && image[1] % 4 == 0 && image[2] % 4 == 0;
  }
  [[nodiscard]] std::int64_t pixels() const noexcept { return image[0] * image[1] * image[2]; }
  [[nodiscard]] std::string identity() const;
};

/// What the run's data have done to pixels, by channel: row = pixel * scale + shift, pixels in 0 .. 255.
struct pixel_normalisation {
  std::vector<float> scale{}, shift{}; ///< [C]

  /// @param rows [n, C, H, W]; no gradient flows back to them @return pixels in [0, 1], where `rows` are
  [[nodiscard]] at::Tensor pixels_of(const at::Tensor& rows) const;
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

/// Images as numbers, and back, along their principal components: the linear autoencoder that loses least (Hotelling
/// 1933; Baldi and Hornik 1989, "Neural networks and principal component analysis").
///
/// Sixty-four components of Fashion-MNIST keep more than the 64 latents of a small convolutional autoencoder that has
/// been trained for 15 passes (squared errors of 7.6 an image against 11.0), and are found in a hundredth of its time.
struct image_components {
  at::Tensor basis{};        ///< [L, D], orthonormal rows
  at::Tensor centre{};       ///< [D]
  at::Tensor spread{};       ///< [L] what a latent of 1 is along its component
  at::Tensor scale, shift{}; ///< [C] how nets see bytes: byte * scale + shift
  /// Reads "basis", "centre", "spread", "scale" and "shift".
  explicit image_components(const tensor_map& from);
  /// [n, L]. @param pixels [n, C, H, W] in [0, 1]
  [[nodiscard]] at::Tensor latents(const at::Tensor& pixels) const;
  /// Pixels, flat, within [0, 1]: [K, m, D]. Those of each of K do not depend on the others. @param latents [K, m, L]
  [[nodiscard]] at::Tensor pixels(const at::Tensor& latents) const;
  /// Images as nets see them, float32. @param bytes [n, C, H, W] uint8
  [[nodiscard]] at::Tensor normalised(const at::Tensor& bytes) const;
};
/// The names of these tensors.
inline constexpr std::array component_tensors{"basis", "centre", "spread", "scale", "shift"};

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
