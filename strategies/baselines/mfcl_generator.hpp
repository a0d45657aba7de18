/// mfcl_generator: images of old classes from a frozen classifier, by one generator that goes on from task to task
/// (MFCL, Babakniya et al. 2023, NeurIPS, from its public code, whose terms go back to Yin et al. 2020 and Smith et al.
/// 2021).
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/function.hpp"
#include "strategies/shared/adam.hpp"
#include <array>
namespace mneme {

// Axes: B images of a step, C channels, H height, W width, Z numbers of a code; G weights of the generator, P of the
// classifier.

struct mfcl_settings {
  std::array<std::int64_t, 3> shape{};         ///< C, H, W of images
  std::int64_t opened = 0;                     ///< Classes that the classifier knows.
  std::int64_t code = 1000, filters = 64;      ///< code: Z; the last convolution before the image has `filters`.
  std::int64_t upsamplings = 2;                ///< By a factor of 2 each.
  std::int64_t steps = 100, batch = 128;       ///< Adam's, in a task; B.
  double rate = 1e-3;                          ///< Adam's.
  double labels = 1.0, information = 1.0;      ///< Weights of the terms.
  double statistics = 50.0, smoothness = 1e-3; ///< The same.
  double temperature = 1000.0;                 ///< What logits are divided by in the first term.
};

/// Layers of the generator: linear, normalisation, then upsampling, convolution, normalisation with epsilon 0.8 and
/// leaky ReLU `upsamplings` times, a convolution to the image, tanh, and a normalisation without weights of its own;
/// of shapes whose sides do not divide by 2^upsamplings, two linear layers in place of all before that.
/// Features are values as nets read them, channels last.
[[nodiscard]] model_ref mfcl_generator(const mfcl_settings& with);
/// Parameters that learn: those of the last normalisation, 1 and 0, are left out.
[[nodiscard]] std::int64_t learnt_parameters(const model& generator);
/// Images in evaluation mode: [B, C, H, W] as nets read them. @param weights [G] @param codes [B, Z]
[[nodiscard]] at::Tensor mfcl_images(const model& generator, const mfcl_settings& with, const at::Tensor& weights,
                                     const at::Tensor& codes);

/// Images smoothed channel by channel, edges mirrored: 5 x 5 weights that fall as exp(-(i^2 + j^2) / 4) from the centre
/// and sum up to 1. Images with sides below 3 stay. @param images [B, C, H, W]
[[nodiscard]] at::Tensor smoothed(const at::Tensor& images);
/// KL(N(running) || N(batch)), a mean over channels and over layers, 1e-8 added to both variances: [].
[[nodiscard]] at::Tensor statistics_divergence(const std::vector<batch_statistics>& layers,
                                               const at::TensorOptions& like);
/// 1 + sum_c p_c log p_c / log C of the mean answer p: 0 where all classes are as frequent, 1 where one is alone.
/// @param logits [B, classes]
[[nodiscard]] at::Tensor information_missing(const at::Tensor& logits);

struct mfcl_losses {
  double total = 0.0, labels = 0.0, information = 0.0, statistics = 0.0, smoothness = 0.0; ///< Terms carry weights.
};
/// What goes from step to step.
struct mfcl_maker {
  adam generator{};     ///< [1, G]; its running statistics stay as they were.
  at::Tensor running{}; ///< [1, G], of which running statistics count.

  /// The generator's weights, [G], with its running statistics.
  [[nodiscard]] at::Tensor whole(const model& generator_net) const;
};
/// A step of Adam on CE(u / T, argmax u) + information + statistics + smoothness, of the classifier's logits u in
/// evaluation mode; the generator is in training mode. @param teacher [P] @param codes [B, Z]
mfcl_losses mfcl_step(const model& net, const model& generator, const mfcl_settings& with, const at::Tensor& teacher,
                      const at::Tensor& codes, mfcl_maker& now);

/// A program that trains the generator for a task. Reads "weights" [P] and "generator" [G]; ends with "generator" [G]
/// and the total of the last step, "objective" [] float64. Adam's moments begin anew.
[[nodiscard]] program_ref mfcl_training(model_ref net, const mfcl_settings& with);
/// A program that reads "generator" [G] and makes "images" [count, C, H, W] float32 by codes of N(0, 1), `batch` at a
/// time.
[[nodiscard]] program_ref mfcl_drawing(const mfcl_settings& with, std::int64_t count, std::int64_t batch);

} // namespace mneme
