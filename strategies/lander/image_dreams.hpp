/// image_dreams: images of old classes without data: a generator is trained through a frozen classifier, by its labels,
/// its batch statistics and a student that is to disagree (LANDER, Tran et al. 2024, CVPR, from its public code, which
/// goes back to NAYER, Tran et al. 2024).
#pragma once
#include "runtime/method/program.hpp"
#include "runtime/models/model.hpp"
namespace mneme {

// Axes: B images of a round, N of the pool; C classes of the run, c of them seen, E numbers of a label's embedding;
// G weights of a generator, P of the classifier; S statistics of its batch normalisations.

/// Layers of a generator that reads `inputs` numbers: linear, two upsamplings with convolutions, sigmoid; of shapes
/// whose sides do not divide by 4, two linear layers. Features are pixels in [0, 1], channels last.
[[nodiscard]] model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters);
/// Its images as nets read them: [K, B, channels, height, width]. @param features [K, B, height width channels]
[[nodiscard]] at::Tensor pictures_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape);

struct dream_settings {
  std::array<std::int64_t, 3> shape{};    ///< C, H, W of images
  std::vector<float> scale{}, shift{};    ///< [C] how nets see a pixel of 0 .. 255
  std::int64_t classes = 0, opened = 0;   ///< C, c
  std::int64_t embedding = 0;             ///< E: the classifier's outputs behind those of classes; 0: none
  std::int64_t noise = 256, filters = 64; ///< Width behind the noise layer; of the generator's last convolution.
  std::int64_t rounds = 50, warm_up = 10, steps = 40, batch = 256;
  std::int64_t student_steps = 50;
  double rate = 2e-3, input_rate = 1e-2, student_rate = 0.1;
  double statistics = 1.0, labels = 0.5, adversary = 1.0, bound = 5.0; ///< Weights of the terms.
  double radius = 0.015, student_temperature = 20.0;

  /// N: a batch of each round from the last one of the warm-up on.
  [[nodiscard]] std::int64_t images() const { return (rounds - std::max<std::int64_t>(warm_up - 1, 0)) * batch; }
};

/// What a step of the generator descends, and its parts before they are weighed.
struct dream_loss {
  at::Tensor total{}, statistics{}, labels{}, adversary{}, bound{};
  at::Tensor seen_statistics{}; ///< [S] means and variances of this step, to be averaged
};
/// @param shown [B, channels, height, width], what the nets are shown @param labels [B] @param anchors [C, E]
/// @param past [S] averages of statistics before; undefined: none @param student undefined: no adversary
[[nodiscard]] dream_loss loss_of_dreams(const model& net, const dream_settings& with, const at::Tensor& teacher,
                                        const at::Tensor& student, const at::Tensor& shown, const at::Tensor& labels,
                                        const at::Tensor& anchors, const at::Tensor& past);

/// A program that makes the pool. Reads "weights" [P] of the classifier, "student" [P] as drawn and "anchors" [C, E];
/// ends with "images" [N, channels, height, width] uint8, "labels" [N] int64 and, round by round, the best total
/// "objective" [rounds] and its "statistics" [rounds] float64. A round is a slice.
[[nodiscard]] program_ref dream_program(model_ref net, const dream_settings& with);

} // namespace mneme
