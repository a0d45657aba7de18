/// latent_nets: parts of a small latent diffusion model (Rombach et al. 2022, "High-Resolution Image Synthesis with
/// Latent Diffusion Models"). An image encoder replaces captioner and text encoder, principal components replace the
/// autoencoder, and a denoiser of latents completes it.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/base/tensor_map.hpp"
#include <algorithm>
#include <array>
#include <vector>
namespace mneme {

// Axes: n images, C channels, H height, W width, D pixels of all channels, E numbers of an embedding, L numbers of a
// latent, U units of the denoiser, K conditions in a stack.

/// Parameters of a small net, contiguous in one flat tensor. A program differentiates with respect to the flat tensor
/// and reads the parts as views. Filled once, then const.
class parameter_list {
public:
  /// Adds a parameter that starts uniform in [-bound, bound], or at zero if bound is 0. Returns its index in parts().
  std::size_t add(std::vector<std::int64_t> shape, double bound);
  /// Adds weights [out, in] or [out, in, kernel, kernel] and biases [out] of a layer. Both start as in PyTorch, uniform
  /// in [-1, 1] / sqrt(fan-in), or at zero. Returns the index of the weights; that of the biases is one larger.
  std::size_t add_layer(const std::vector<std::int64_t>& shape, bool zeros = false);

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Draws initial values [size()] float32; every parameter has its own stream.
  [[nodiscard]] at::Tensor initial(const rng_key& key) const;
  /// Returns views of `flat` [size()] in the order of addition. Gradients pass through them.
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

/// Sizes of the nets. The encoder is convolutional for images whose sides are multiples of 4 and at least 8. For all
/// others it is a multilayer perceptron.
struct latent_shape {
  std::array<std::int64_t, 3> image{}; ///< C, H, W
  std::int64_t kinds = 0;              ///< Number of kinds that the encoder classifies.
  std::int64_t embedding = 512, units = 320, blocks = 3;
  std::int64_t latent_max = 96;
  /// L, at most the number of pixels.
  [[nodiscard]] std::int64_t latent() const noexcept { return std::min(latent_max, pixels()); }
  [[nodiscard]] bool convolves() const noexcept {
    return image[1] >= 8 && image[2] >= 8 && image[1] % 4 == 0 && image[2] % 4 == 0;
  }
  [[nodiscard]] std::int64_t pixels() const noexcept { return image[0] * image[1] * image[2]; }
  [[nodiscard]] std::string identity() const;
};

/// Normalization of the run's data by channel: row = pixel * scale + shift, with pixel in 0 .. 255.
struct pixel_normalization {
  std::vector<float> scale{}, shift{}; ///< [C]

  /// Returns pixels [n, C, H, W] in [0, 1], on the device of `rows` and without gradient. @param rows [n, C, H, W]
  [[nodiscard]] at::Tensor pixels_of(const at::Tensor& rows) const;
};

/// Maps images to vectors of length 1. Its classification head is used only in training and to select images.
class image_encoder {
public:
  explicit image_encoder(const latent_shape& shape);
  [[nodiscard]] const parameter_list& parameters() const noexcept { return list_; }
  /// Returns embeddings [n, E]. @param images [n, C, H, W], normalized
  [[nodiscard]] at::Tensor embeddings(const at::Tensor& flat, const at::Tensor& images) const;
  /// Returns logits [n, kinds] for eight times the embeddings. @param embeddings [n, E]
  [[nodiscard]] at::Tensor logits(const at::Tensor& flat, const at::Tensor& embeddings) const;

private:
  latent_shape shape_;
  parameter_list list_;
  std::size_t head_ = 0;
};

/// Linear autoencoder by principal components, which minimizes the squared reconstruction error (Hotelling 1933; Baldi
/// and Hornik 1989, "Neural networks and principal component analysis").
///
/// On Fashion-MNIST, 64 components have a squared error of 7.6 per image. A small convolutional autoencoder with 64
/// latents has 11.0 after 15 passes, and takes a hundred times as long.
struct image_components {
  at::Tensor basis{};        ///< [L, D], orthonormal rows
  at::Tensor center{};       ///< [D]
  at::Tensor spread{};       ///< [L] displacement along a component per unit of its latent
  at::Tensor scale, shift{}; ///< [C] input of nets = byte * scale + shift
  /// Reads "basis", "centre", "spread", "scale" and "shift".
  explicit image_components(const tensor_map& from);
  /// Returns latents [n, L]. @param pixels [n, C, H, W] in [0, 1]
  [[nodiscard]] at::Tensor latents(const at::Tensor& pixels) const;
  /// Returns flat pixels in [0, 1]: [K, m, D]. The bits of the K results do not depend on each other. @param latents
  /// [K, m, L]
  [[nodiscard]] at::Tensor pixels(const at::Tensor& latents) const;
  /// Returns normalized images, float32. @param bytes [n, C, H, W] uint8
  [[nodiscard]] at::Tensor normalized(const at::Tensor& bytes) const;
};
/// Names of the tensors of image_components.
inline constexpr std::array component_tensors{"basis", "centre", "spread", "scale", "shift"};

/// Predicts the velocity (Salimans and Ho 2022) of noisy latents, given time and condition. Time and condition
/// determine the scales and shifts of the residual blocks' normalized inputs (FiLM, Perez et al. 2018). Blocks start as
/// identities.
class latent_denoiser {
public:
  explicit latent_denoiser(const latent_shape& shape);
  [[nodiscard]] const parameter_list& parameters() const noexcept { return list_; }

  /// Maps x [K, m, in] by w [out, in] and b [out] to [K, m, out].
  using product = at::Tensor (*)(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
  /// LibTorch's linear layer.
  [[nodiscard]] static at::Tensor plain(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);
  /// plain(), but the bits of the K results do not depend on each other (runtime/models/function.hpp).
  [[nodiscard]] static at::Tensor stacked(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b);

  /// Returns the encoded condition [K, m, U]. @param embeddings [K, m, E]
  [[nodiscard]] at::Tensor condition(const at::Tensor& flat, const at::Tensor& embeddings, product by) const;
  /// Returns the trained vector [U] that replaces a missing condition.
  [[nodiscard]] at::Tensor no_condition(const at::Tensor& flat) const;
  /// Returns the encoded times [times, U].
  [[nodiscard]] at::Tensor time(const at::Tensor& flat, const std::vector<std::int64_t>& times) const;
  /// Returns velocities [K, m, L]. @param x [K, m, L] @param condition_rows [K, m or 1, U] encoded condition + encoded
  /// time
  [[nodiscard]] at::Tensor velocities(const at::Tensor& flat, const at::Tensor& x, const at::Tensor& condition_rows,
                                      product by) const;

private:
  latent_shape shape_;
  parameter_list list_;
  std::size_t time_ = 0, condition_ = 0, none_ = 0, in_ = 0, blocks_ = 0, out_ = 0;
};

} // namespace mneme
