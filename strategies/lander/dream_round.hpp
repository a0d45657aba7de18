/// dream_round: how LANDER's generator learns in one round, and its student behind it (Tran et al. 2024, CVPR; NAYER,
/// Tran et al. 2024), with everything that is drawn as an argument.
#pragma once
#include "runtime/base/ceil_div.hpp"
#include "strategies/shared/inversion_student.hpp"
#include <ATen/core/Tensor.h>
#include <array>
#include <vector>
namespace mneme {

// Axes: B images of a round; C classes of the run, c of them seen, E numbers of a label's embedding, W of its noise;
// L noise layers; G weights of a generator, P of the classifier; S statistics of its batch normalisations.

struct dream_settings {
  std::array<std::int64_t, 3> shape{};    ///< C, H, W of images
  std::vector<float> scale{}, shift{};    ///< [C] how nets see a pixel of 0 .. 255
  std::int64_t classes = 0, opened = 0;   ///< C, c
  std::int64_t embedding = 0;             ///< E: the classifier's outputs behind those of classes; 0: none
  std::int64_t noise = 256, filters = 64; ///< W; width of the generator's last convolution.
  std::int64_t chunk = 10;                ///< Rows of a batch that share a noise layer.
  std::int64_t rounds = 50, warm_up = 10, steps = 40, batch = 256;
  std::int64_t lead = 2; ///< Rounds behind the warm-up before the student is to disagree.
  bool views = true;     ///< Nets are shown images cropped and flipped, anew in each step.
  std::int64_t student_steps = 50, student_batch = 128;
  double rate = 2e-3, input_rate = 1e-2, student_rate = 0.1, student_momentum = 0.9, student_decay = 2e-4;
  double statistics = 1.0, labels = 0.5, adversary = 1.0, bound = 5.0; ///< Weights of the terms.
  double radius = 0.015, student_temperature = 20.0;

  /// A batch of each round from the last one of the warm-up on.
  [[nodiscard]] std::int64_t images() const { return (rounds - std::max<std::int64_t>(warm_up - 1, 0)) * batch; }
  [[nodiscard]] std::int64_t noise_layers() const { return ceil_div(batch, chunk); } ///< L
  [[nodiscard]] student_rules student() const {
    return {.classes = classes,
            .opened = opened,
            .embedding = embedding,
            .temperature = student_temperature,
            .rate = student_rate,
            .momentum = student_momentum,
            .decay = student_decay,
            .map_weight = bound};
  }
};

/// What a step of the generator descends, and its parts before they are weighed.
struct dream_loss {
  at::Tensor total{}, statistics{}, labels{}, adversary{}, bound{};
  at::Tensor seen_statistics{}; ///< [S] means and variances of this step, detached
};
/// @param shown [B, channels, height, width], what the nets are shown @param labels [B] @param anchors [C, E]
/// @param past [S] average of earlier rounds; undefined: none @param student undefined: no adversary
[[nodiscard]] dream_loss loss_of_dreams(const model& net, const dream_settings& with, const at::Tensor& teacher,
                                        const at::Tensor& student, const at::Tensor& shown, const at::Tensor& labels,
                                        const at::Tensor& anchors, const at::Tensor& past);

/// What goes from round to round.
struct dreamer {
  at::Tensor generator{};         ///< [G]
  at::Tensor norm{};              ///< [2, E] scales and shifts of normalised embeddings
  at::Tensor mean{}, deviation{}; ///< [channels] of what the nets are shown
  at::Tensor past{};              ///< [S] average of statistics, or undefined
};
/// What a round draws.
struct dream_draws {
  at::Tensor labels{}; ///< [B] int64
  at::Tensor layers{}; ///< [L, W, E] noise layers at the round's begin; their biases begin at 0
  at::Tensor views{};  ///< [steps, B, 3], see viewed(); undefined: images are shown as they are
};
struct dream_result {
  at::Tensor best{};                ///< [B, channels, height, width] in [0, 1]: images of the least total
  double total = 0.0;               ///< Theirs.
  double statistics = 0.0;          ///< Theirs.
  std::vector<dream_loss> losses{}; ///< One for each step.
};
/// A round of Adam on generator, noise layers, and the mean and deviation of what is shown; the moments begin anew.
/// Throws std::runtime_error where no step has a finite loss.
[[nodiscard]] dream_result dream_round(const model& net, const model& generator, const dream_settings& with,
                                       const at::Tensor& teacher, const at::Tensor& student, const at::Tensor& anchors,
                                       dreamer& now, const dream_draws& drawn);

} // namespace mneme
