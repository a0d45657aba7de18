/// image_dreams: images of old classes without data: a generator is trained through a frozen classifier, by its labels,
/// its batch statistics and a student that is to disagree (LANDER, Tran et al. 2024, CVPR, from its public code, which
/// goes back to NAYER, Tran et al. 2024).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/lander/dream_round.hpp"
namespace mneme {

// Axes: K models, B images of a round, N of the pool; C classes of the run, E numbers of a label's embedding; P weights
// of the classifier.

/// Layers of a generator that reads `inputs` numbers: linear, two upsamplings with convolutions, sigmoid; of shapes
/// whose sides do not divide by 4, two linear layers. Features are pixels in [0, 1], channels last.
[[nodiscard]] model_ref image_generator(std::array<std::int64_t, 3> shape, std::int64_t inputs, std::int64_t filters);
/// Its images as nets read them: [K, B, channels, height, width]. @param features [K, B, height width channels]
[[nodiscard]] at::Tensor pictures_of(const at::Tensor& features, const std::array<std::int64_t, 3>& shape);

/// Labels of a batch: 0 .. classes - 1 again and again, and the rest at random. @return [batch] int64
[[nodiscard]] at::Tensor dream_labels(std::int64_t batch, std::int64_t classes, const rng_key& key);

/// A program that makes the pool. Reads "weights" [P] of the classifier, "student" [P] as it begins and "anchors" [C,
/// E]; ends with "images" [N, channels, height, width] uint8, "labels" [N] int64 and, round by round, the best total
/// "objective" [rounds] and its "statistics" [rounds] float64. A round is a slice.
[[nodiscard]] program_ref dream_program(model_ref net, const dream_settings& with);

} // namespace mneme
