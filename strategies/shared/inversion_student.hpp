/// inversion_student: what generators of images descend through a frozen net, and the student that they are to fool
/// (LANDER, TARGET; Yin et al. 2020, "Dreaming to Distill").
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/models/function.hpp"
#include <ATen/core/Tensor.h>
#include <vector>
namespace mneme {

// Axes: B images of a batch, N of a pool, C classes of the run, c of them opened, P weights of the net, S statistics of
// its batch normalisations.

/// How far a batch is from what a net was trained on.
struct statistics_match {
  at::Tensor distance{}; ///< [] |running - (0.1 now + 0.9 past)|, means and variances, summed over layers
  at::Tensor now{};      ///< [S] means and variances of the batch, detached
};
/// Without a `past` it is |running - now| (Yin et al. 2020, eq. 4, without squares).
/// @param past [S] average of earlier rounds, or undefined @param like whose type and device zeros have
[[nodiscard]] statistics_match match_statistics(const std::vector<batch_statistics>& layers, const at::Tensor& past,
                                                const at::TensorOptions& like);
/// The average after one more round: [S].
[[nodiscard]] at::Tensor next_average(const at::Tensor& past, const at::Tensor& now);

/// Where both agree, they are to disagree: -mean of KL(teacher || student) over the batch. @param logits, other [B, c]
[[nodiscard]] at::Tensor disagreement(const at::Tensor& logits, const at::Tensor& other);

/// How a student learns from a frozen net; heads may have `embedding` rows behind those of classes, a map of features.
struct student_rules {
  std::int64_t classes = 0, opened = 0, embedding = 0; ///< C, c
  double temperature = 20.0, rate = 0.1, momentum = 0.9, decay = 2e-4;
  double map_weight = 0.0; ///< What the mean square between both maps weighs.
};
/// The student as a task begins: `weights` [P] with convolutions drawn by Xavier's normal, scales of normalisations by
/// N(1, 0.02^2), their shifts 0, and the rows of the head behind those of classes, the map, by Xavier's normal with
/// biases of N(0, 1). Running statistics and the head stay.
[[nodiscard]] at::Tensor student_start(const model& net, const at::Tensor& weights, std::int64_t classes,
                                       const rng_key& key);
/// One step of SGD: T^2 KL(teacher || student) at T, a mean over rows, and the mean square between both maps.
/// @param inputs [b, channels, height, width] normalised @param momentum [P], undefined before the first step
void teach_student(const model& net, const student_rules& with, const at::Tensor& teacher, const at::Tensor& inputs,
                   at::Tensor& student, at::Tensor& momentum);

/// Steps of the student on a pool, one shuffle of it after the other, each with a short last batch.
struct pool_lesson {
  std::int64_t steps = 0, batch = 0;
  bool views = true;           ///< Images are cropped and mirrored, anew in each step.
  at::Tensor scale{}, shift{}; ///< [channels, 1, 1] how nets see a pixel of 0 .. 255
  rng_key order{}, shown{};    ///< What shuffles and views are drawn by.
};
/// @param images [N, channels, height, width] uint8
void teach_on_pool(const model& net, const student_rules& with, const at::Tensor& teacher, const at::Tensor& images,
                   const pool_lesson& how, at::Tensor& student, at::Tensor& momentum);

} // namespace mneme
