/// synthesis_round: one training round of LANDER's generator (Tran et al., CVPR 2024; NAYER, Tran et al. 2024). All
/// random draws are arguments.
#pragma once
#include "runtime/base/ceil_div.hpp"
#include "strategies/shared/inversion_student.hpp"
#include <ATen/core/Tensor.h>
#include <array>
#include <vector>
namespace mneme {

// Axes: B images of a round, C classes of the run, c classes seen, E numbers of a label embedding, W numbers of a code,
// L noise layers, G weights of a generator, P weights of the classifier, S running statistics of its batch
// normalizations.

/// Sizes of the generator and options of its training.
struct synthesis_settings {
  std::array<std::int64_t, 3> shape{};        ///< C, H, W of the images
  std::vector<float> scale{}, shift{};        ///< [C] input = scale * pixel + shift, for a pixel from 0 to 255
  std::int64_t classes = 0, seen_classes = 0; ///< C, c
  std::int64_t embedding = 0;                 ///< E, the number of classifier outputs after those of classes; 0: none
  std::int64_t noise = 256, filters = 64;     ///< W, and the number of filters of the generator's last convolution.
  std::int64_t chunk = 10;                    ///< Number of rows of a batch that share a noise layer.
  std::int64_t rounds = 50, warm_up = 10, steps = 40, batch = 256;
  std::int64_t lead = 2; ///< Number of rounds after the warm-up that have no adversarial term.
  bool views = true;     ///< True: images are cropped and mirrored, with new draws in every step.
  std::int64_t student_steps = 50, student_batch = 128;
  double rate = 2e-3, input_rate = 1e-2, student_rate = 0.1, student_momentum = 0.9, student_decay = 2e-4;
  double statistics = 1.0, labels = 0.5, adversary = 1.0, bound = 5.0; ///< Weights of the loss terms.
  double radius = 0.015, student_temperature = 20.0;

  /// Number of images: one batch per round, starting with the last warm-up round.
  [[nodiscard]] std::int64_t images() const { return (rounds - std::max<std::int64_t>(warm_up - 1, 0)) * batch; }
  [[nodiscard]] std::int64_t noise_layers() const { return ceil_div(batch, chunk); } ///< L
  [[nodiscard]] student_rules student() const {
    return {.classes = classes,
            .seen_classes = seen_classes,
            .embedding = embedding,
            .temperature = student_temperature,
            .rate = student_rate,
            .momentum = student_momentum,
            .decay = student_decay,
            .map_weight = bound};
  }
};

/// The generator's total loss, and its terms before weighting.
struct generator_loss {
  at::Tensor total{}, statistics{}, labels{}, adversary{}, bound{};
  at::Tensor seen_statistics{}; ///< [S] batch means and variances of this step, detached
};
/// Loss of the generator for one batch.
/// @param shown [B, C, H, W], normalized images @param labels [B] @param anchors [C, E]
/// @param past [S] average of earlier rounds, or undefined @param student [P]; undefined: no adversarial term
[[nodiscard]] generator_loss compute_generator_loss(const model& net, const synthesis_settings& settings,
                                                    const at::Tensor& teacher, const at::Tensor& student,
                                                    const at::Tensor& shown, const at::Tensor& labels,
                                                    const at::Tensor& anchors, const at::Tensor& past);

/// State between rounds.
struct synthesis_state {
  at::Tensor generator{};         ///< [G]
  at::Tensor norm{};              ///< [2, E] scales and shifts of normalized embeddings
  at::Tensor mean{}, deviation{}; ///< [channels] mean and deviation of the nets' input
  at::Tensor past{};              ///< [S] average of batch statistics; undefined before the first round
};
/// Random draws of one round.
struct synthesis_draws {
  at::Tensor labels{}; ///< [B] int64
  at::Tensor layers{}; ///< [L, W, E] initial noise layers; their biases start at 0
  at::Tensor views{};  ///< [steps, B, 3], see crop_and_flip(); undefined: no crops
};
/// Result of one round.
struct synthesis_result {
  at::Tensor best{};                    ///< [B, C, H, W] in [0, 1]: the batch with the lowest total loss
  double total = 0.0;                   ///< total loss of `best`
  double statistics = 0.0;              ///< statistics term of `best`
  std::vector<generator_loss> losses{}; ///< one per step
};
/// Runs one round of Adam on the generator, the noise layers, and the mean and deviation of the nets' input, with new
/// moments. Updates `now`. Throws std::runtime_error if no step has a finite loss.
[[nodiscard]] synthesis_result synthesis_round(const model& net, const model& generator,
                                               const synthesis_settings& settings, const at::Tensor& teacher,
                                               const at::Tensor& student, const at::Tensor& anchors,
                                               synthesis_state& now, const synthesis_draws& drawn);

} // namespace mneme
