/// image_dreams: images of old classes without data: a generator is trained through a frozen classifier, by its labels,
/// its batch statistics and a student that is to disagree (LANDER, Tran et al. 2024, CVPR, from its public code, which
/// goes back to NAYER, Tran et al. 2024).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/lander/dream_round.hpp"
namespace mneme {

// Axes: B images of a round, N of the pool; C classes of the run, E numbers of a label's embedding; P weights
// of the classifier.

/// Labels of a batch: 0 .. classes - 1 again and again, and the rest at random. @return [batch] int64
[[nodiscard]] at::Tensor dream_labels(std::int64_t batch, std::int64_t classes, const rng_key& key);

/// A program that makes the pool. Reads "weights" [P] of the classifier, "student" [P] as it begins and "anchors" [C,
/// E]; ends with "images" [N, channels, height, width] uint8, "labels" [N] int64 and, round by round, the best total
/// "objective" [rounds] and its "statistics" [rounds] float64. A round is a slice.
[[nodiscard]] program_ref dream_program(model_ref net, const dream_settings& with);

} // namespace mneme
