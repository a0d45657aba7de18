/// mfcl_generator: generates images of old classes through a frozen classifier. One generator is trained over all tasks
/// (MFCL, Babakniya et al., NeurIPS 2023, and its official code; the loss terms go back to Yin et al. 2020 and Smith et
/// al. 2021).
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/function.hpp"
#include "strategies/shared/adam.hpp"
#include <array>
namespace mneme {

// Axes: B images of a step, C channels, H height, W width, Z numbers of a code, G weights of the generator, P weights
// of the classifier.

/// Sizes of the generator and options of its training.
struct mfcl_settings {
  std::array<std::int64_t, 3> shape{};         ///< C, H, W of the images
  std::int64_t seen_classes = 0;               ///< Classes on which the classifier was trained.
  std::int64_t code = 1000, filters = 64;      ///< Z, and the number of output channels of the last hidden convolution.
  std::int64_t upsamplings = 2;                ///< Number of upsamplings by a factor of 2.
  std::int64_t steps = 100, batch = 128;       ///< Number of Adam steps per task, and B.
  double rate = 1e-3;                          ///< Learning rate of Adam.
  double labels = 1.0, information = 1.0;      ///< Weights of the loss terms.
  double statistics = 50.0, smoothness = 1e-3; ///< Weights of the loss terms.
  double temperature = 1000.0;                 ///< Divisor of the logits in the label term.
};

/// Builds the generator. It begins with a linear layer and a normalization. `upsamplings` stages of upsampling,
/// convolution, normalization with epsilon 0.8 and leaky ReLU follow. It ends with a convolution to the image, tanh,
/// and a normalization without weights. If height or width is not divisible by 2^upsamplings, two linear layers replace
/// all layers before tanh. Features are normalized pixels, channels last.
[[nodiscard]] model_ref mfcl_generator(const mfcl_settings& settings);
/// Number of trained parameters. The last normalization is not trained: its scale is 1 and its shift 0.
[[nodiscard]] std::int64_t trained_parameter_count(const model& generator);
/// Generates images in evaluation mode: [B, C, H, W], normalized pixels. @param weights [G] @param codes [B, Z]
[[nodiscard]] at::Tensor mfcl_images(const model& generator, const mfcl_settings& settings, const at::Tensor& weights,
                                     const at::Tensor& codes);

/// Smooths each channel by a 5 x 5 kernel proportional to exp(-(i^2 + j^2) / 4), with reflected edges. The kernel sums
/// to 1. Images with a side below 3 are returned unchanged. @param images [B, C, H, W]
[[nodiscard]] at::Tensor smoothed(const at::Tensor& images);
/// KL(N(running) || N(batch)), averaged over channels and layers: []. 1e-8 is added to both variances.
[[nodiscard]] at::Tensor statistics_divergence(const std::vector<batch_statistics>& layers,
                                               const at::TensorOptions& like);
/// 1 + sum_c p_c log p_c / log C of the mean softmax p: 0 if all classes are equally frequent, 1 if there is only one
/// class.
/// @param logits [B, classes]
[[nodiscard]] at::Tensor entropy_deficit(const at::Tensor& logits);

/// Loss values of one step.
struct mfcl_losses {
  double total = 0.0, labels = 0.0, information = 0.0, statistics = 0.0, smoothness = 0.0; ///< The terms include their
                                                                                           ///< weights.
};
/// State of the generator's training.
struct mfcl_generator_state {
  adam generator{};     ///< [1, G]; its running statistics keep their initial values
  at::Tensor running{}; ///< [1, G]; only its running statistics are used

  /// Returns the generator's weights with the current running statistics, [G].
  [[nodiscard]] at::Tensor whole(const model& generator_net) const;
};
/// One Adam step on CE(u / T, argmax u) + information + statistics + smoothness, with u the classifier's logits. The
/// classifier is in evaluation mode, the generator in training mode. Returns the losses before the step.
/// @param teacher [P] @param codes [B, Z]
mfcl_losses mfcl_step(const model& net, const model& generator, const mfcl_settings& settings,
                      const at::Tensor& teacher, const at::Tensor& codes, mfcl_generator_state& now);

/// A program that trains the generator for one task, with new Adam moments. Reads "weights" [P] and "generator" [G];
/// returns "generator" [G] and "objective" [] float64, the total loss of the last step.
[[nodiscard]] program_ref mfcl_training(model_ref net, const mfcl_settings& settings);
/// A program that generates images from codes of N(0, 1), `batch` at a time. Reads "generator" [G]; returns "images"
/// [count, C, H, W] float32.
[[nodiscard]] program_ref mfcl_drawing(const mfcl_settings& settings, std::int64_t count, std::int64_t batch);

} // namespace mneme
