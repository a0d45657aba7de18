/// target_images: synthesizes images of old classes through a frozen classifier. A copy of the generator adapts to each
/// batch (TARGET, Zhang et al., ICCV 2023, and its official code, based on Fast Meta-DFKD, Fang et al. 2022).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/shared/adam.hpp"
#include "strategies/shared/inversion_student.hpp"
#include <algorithm>
#include <array>
namespace mneme {

// Axes: B images of a round, N images of the pool, Z numbers of a code, G weights of a generator, P weights of the
// classifier, S running statistics of its batch normalizations.

/// Update of the generator from the copy that a round has trained.
enum class outer_step : std::uint8_t {
  first_order, ///< The sum of the copy's gradients (Finn et al. 2017, MAML, first-order).
  reptile,     ///< 67 times the change of the copy (Nichol et al. 2018).
};

/// Sizes of the generator and options of its training.
struct target_settings {
  std::array<std::int64_t, 3> shape{}; ///< C, H, W of the images
  std::vector<float> scale{}, shift{}; ///< [C] input = scale * pixel + shift, pixel in 0 .. 255
  std::int64_t seen_classes = 0;       ///< Classes on which the classifier was trained.
  std::int64_t code = 256, filters = 64, rounds = 10, steps = 10, batch = 256; ///< code: Z
  double rate = 2e-3, code_rate = 1e-2; ///< Adam rates of the copy and of the codes. The generator's rate is steps *
                                        ///< rate.
  outer_step outer = outer_step::first_order;
  double statistics = 10.0, labels = 0.5, adversary = 1.0; ///< Weights of the loss terms.
  bool views = true;                                       ///< True: images are cropped and mirrored, with new draws in
                                                           ///< every step.
  std::int64_t most = 8000;                                ///< Size of the pool, which keeps the first images by file
                                                           ///< name; 0: all images.

  /// First round with the adversarial term, counted from 1. The student trains after each later round.
  std::int64_t warm_up = 20;
  std::int64_t student_steps = 400, student_batch = 256;
  double student_rate = 0.2, student_floor = 2e-4, student_momentum = 0.9, student_decay = 1e-4;
  double student_temperature = 20.0;

  /// True if any round has an adversarial student.
  [[nodiscard]] bool uses_adversary() const { return adversary > 0.0 && rounds >= warm_up; }
  [[nodiscard]] std::int64_t images() const { return most > 0 ? std::min(most, rounds * batch) : rounds * batch; }
  /// Learning rate of the student after a round, counted from 0: half a cosine over all rounds.
  [[nodiscard]] double rate_of_student(std::int64_t round) const;
};

/// State between rounds.
struct target_generator_state {
  adam generator{};  ///< [1, G]; the moments of the outer step persist over the rounds of a task
  at::Tensor past{}; ///< [S] average of batch statistics; undefined before the first round
};
/// Random draws of one round.
struct target_draws {
  at::Tensor labels{}; ///< [B] int64
  at::Tensor codes{};  ///< [B, Z]
  at::Tensor views{};  ///< [steps, B, 3], see crop_and_flip(); undefined: no crops
};
/// Loss values of one step; the terms are unweighted.
struct target_losses {
  double total = 0.0, statistics = 0.0, labels = 0.0, adversary = 0.0;
};
/// Result of one round.
struct target_round_result {
  at::Tensor best{}; ///< [B, C, H, W] in [0, 1]: the batch with the lowest total loss
  double total = 0.0;
  std::vector<target_losses> losses{}; ///< one per step
};
/// Runs one round. A copy of the generator and the codes take Adam steps on
///     a |running - (0.1 batch + 0.9 past) statistics| + b CE(labels) + c (-KL(teacher || student) where both agree).
/// Then the generator takes one step by outer_step, and the average of statistics is updated once. Throws
/// std::runtime_error if no loss is finite.
/// @param teacher [P] @param student [P]; undefined: no adversarial term
[[nodiscard]] target_round_result target_round(const model& net, const model& generator,
                                               const target_settings& settings, const at::Tensor& teacher,
                                               const at::Tensor& student, target_generator_state& now,
                                               const target_draws& drawn);

/// A program that makes the pool; a round is a slice. Reads "weights" [P] of the classifier and the initial "student"
/// [P]. Returns "images" [N, C, H, W] uint8, "labels" [N] int64 and "objective" [rounds] float64, the lowest total loss
/// of each round.
[[nodiscard]] program_ref target_program(model_ref net, const target_settings& settings);

} // namespace mneme
