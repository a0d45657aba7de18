/// image_synthesis: synthesizes images of old classes without data. A generator is trained through a frozen classifier
/// by labels, batch statistics and an adversarial student (LANDER, Tran et al., CVPR 2024, and its official code, based
/// on NAYER, Tran et al. 2024).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/lander/synthesis_round.hpp"
namespace mneme {

// Axes: B images of a round, N images of the pool, C classes of the run, E numbers of a label embedding, P weights of
// the classifier.

/// Returns labels [batch] int64: as many full sequences 0, 1, ..., classes - 1 as fit, then random labels.
[[nodiscard]] at::Tensor synthesis_labels(std::int64_t batch, std::int64_t classes, const rng_key& key);

/// A program that makes the pool; a round is a slice. Reads "weights" [P] of the classifier, the initial "student" [P]
/// and "anchors" [C, E]. Returns "images" [N, channels, height, width] uint8, "labels" [N] int64, and for each round
/// the lowest total loss, "objective" [rounds], and the statistics term of that loss, "statistics" [rounds], both
/// float64.
[[nodiscard]] program_ref synthesis_program(model_ref net, const synthesis_settings& settings);

} // namespace mneme
