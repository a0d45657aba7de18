/// inversion_student: losses of generators that invert a frozen net, and the student that serves as their adversary
/// (LANDER, TARGET; Yin et al. 2020, "Dreaming to Distill").
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/models/function.hpp"
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

// Axes: B images of a batch, N images of a pool, C classes of the run, c classes seen, P weights of the net, S running
// statistics of its batch normalizations.

/// Distance of a batch's statistics from the running statistics of a net.
struct statistics_match {
  at::Tensor distance{}; ///< [] sum over layers of |running - (0.1 now + 0.9 past)| of means and of variances
  at::Tensor now{};      ///< [S] means and variances of the batch, detached
};
/// Without `past`, the distance of a layer is |running - now| (Yin et al. 2020, eq. 4, without squares).
/// @param past [S] average over earlier rounds, or undefined
/// @param like type and device of new tensors
[[nodiscard]] statistics_match match_statistics(const std::vector<batch_statistics>& layers, const at::Tensor& past,
                                                const at::TensorOptions& like);
/// Returns the average after one more round, 0.9 past + 0.1 now: [S].
[[nodiscard]] at::Tensor next_average(const at::Tensor& past, const at::Tensor& now);

/// Adversarial loss: -mean over the batch of KL(net || student). Rows that net and student assign to different classes
/// count as 0.
/// @param logits [B, c] of the net @param other [B, c] of the student
[[nodiscard]] at::Tensor student_teacher_gap(const at::Tensor& logits, const at::Tensor& other);

/// Rules of the student's distillation from a frozen net. A head may have `embedding` extra rows after those of the
/// classes. These rows are a linear map of the features to a label embedding.
struct student_rules {
  std::int64_t classes = 0, seen_classes = 0, embedding = 0; ///< C, c, and the number of extra rows of the head
  double temperature = 20.0, rate = 0.1, momentum = 0.9, decay = 2e-4;
  double map_weight = 0.0; ///< Weight of the mean squared difference between the maps of teacher and student.
};
/// Initial student of a task: `weights` [P] with convolutions drawn from Xavier's normal distribution, batch
/// normalization scales from N(1, 0.02^2) and shifts 0. The map rows of the head come from Xavier's normal
/// distribution, their biases from N(0, 1). Running statistics and the class rows of the head are kept.
[[nodiscard]] at::Tensor student_start(const model& net, const at::Tensor& weights, std::int64_t classes,
                                       const rng_key& key);
/// Performs one SGD step on T^2 KL(teacher || student) at temperature T, averaged over rows, plus the weighted mean
/// squared difference of the maps. Updates `student` and `momentum` in place.
/// @param inputs [b, channels, height, width], normalized
/// @param momentum [P], undefined before the first step
void train_student(const model& net, const student_rules& rules, const at::Tensor& teacher, const at::Tensor& inputs,
                   at::Tensor& student, at::Tensor& momentum);

/// Student steps on a pool of images. The pool is shuffled again after each pass; the last batch of a pass may be
/// short.
struct pool_training {
  std::int64_t steps = 0, batch = 0;
  bool views = true;           ///< True: images are cropped and mirrored, with new draws in every step.
  at::Tensor scale{}, shift{}; ///< [channels, 1, 1]: a net reads scale * pixel + shift, for a pixel from 0 to 255
  rng_key order{}, shown{};    ///< Keys for the shuffles and for the crops.
};
/// Trains the student for `how.steps` steps. @param images [N, channels, height, width] uint8
void train_student_on_pool(const model& net, const student_rules& rules, const at::Tensor& teacher,
                           const at::Tensor& images, const pool_training& how, at::Tensor& student,
                           at::Tensor& momentum);

} // namespace mneme
