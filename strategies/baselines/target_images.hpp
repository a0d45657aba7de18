/// target_images: images of old classes from a frozen classifier, by a generator whose copies adapt to one batch each
/// (TARGET, Zhang et al. 2023, ICCV, from its public code, which goes back to Fast Meta-DFKD, Fang et al. 2022).
#pragma once
#include "runtime/method/program.hpp"
#include "strategies/shared/adam.hpp"
#include "strategies/shared/inversion_student.hpp"
#include <algorithm>
#include <array>
namespace mneme {

// Axes: B images of a round, N of the pool, Z numbers of a code; G weights of a generator, P of the classifier; S
// statistics of its batch normalisations.

/// What the generator learns of the copy that a round has trained.
enum class outer_step : std::uint8_t {
  first_order, ///< The sum of the copy's gradients (Finn et al. 2017, MAML, without second derivatives).
  reptile,     ///< 67 times what the copy has moved (Nichol et al. 2018).
};

struct target_settings {
  std::array<std::int64_t, 3> shape{};                                         ///< C, H, W of images
  std::vector<float> scale{}, shift{};                                         ///< [C] how nets see a pixel of 0 .. 255
  std::int64_t opened = 0;                                                     ///< Classes that the classifier knows.
  std::int64_t code = 256, filters = 64, rounds = 10, steps = 10, batch = 256; ///< code: Z
  double rate = 2e-3, code_rate = 1e-2; ///< Adam's, of the copy and of the codes; the generator's is steps * rate.
  outer_step outer = outer_step::first_order;
  double statistics = 10.0, labels = 0.5, adversary = 1.0; ///< Weights of the terms.
  bool views = true;        ///< Nets are shown images cropped and mirrored, anew in each step.
  std::int64_t most = 8000; ///< Images of the pool that are kept, the first by file name; 0: all.

  /// From this round on, counted from 1, a student is to be fooled; it learns behind later ones.
  std::int64_t warm_up = 20;
  std::int64_t student_steps = 400, student_batch = 256;
  double student_rate = 0.2, student_floor = 2e-4, student_momentum = 0.9, student_decay = 1e-4;
  double student_temperature = 20.0;

  /// The student is needed at all.
  [[nodiscard]] bool adverse() const { return adversary > 0.0 && rounds >= warm_up; }
  [[nodiscard]] std::int64_t images() const { return most > 0 ? std::min(most, rounds * batch) : rounds * batch; }
  /// The student's learning rate behind a round, from 0: half a cosine over all rounds.
  [[nodiscard]] double rate_of_student(std::int64_t round) const;
};

/// What goes from round to round.
struct target_maker {
  adam generator{};  ///< [1, G], of the outer step; its moments last over the rounds of a task.
  at::Tensor past{}; ///< [S] average of statistics, or undefined
};
/// What a round draws.
struct target_draws {
  at::Tensor labels{}; ///< [B] int64
  at::Tensor codes{};  ///< [B, Z]
  at::Tensor views{};  ///< [steps, B, 3], see viewed(); undefined: images are shown as they are
};
struct target_losses {
  double total = 0.0, statistics = 0.0, labels = 0.0, adversary = 0.0;
};
struct target_round_result {
  at::Tensor best{}; ///< [B, channels, height, width] in [0, 1]: images of the least total
  double total = 0.0;
  std::vector<target_losses> losses{}; ///< One for each step.
};
/// A round: a copy of the generator, and the codes, take Adam's steps on
///     a |running - (0.1 batch + 0.9 past) statistics| + b CE(labels) + c (-KL(teacher || student) where both agree),
/// and the generator one step of outer_step. The average of statistics moves once in a round. Throws std::runtime_error
/// where no loss is finite. @param student undefined: no adversary
[[nodiscard]] target_round_result target_round(const model& net, const model& generator, const target_settings& with,
                                               const at::Tensor& teacher, const at::Tensor& student, target_maker& now,
                                               const target_draws& drawn);

/// A program that makes the pool. Reads "weights" [P] of the classifier and "student" [P] as it begins; ends with
/// "images" [N, channels, height, width] uint8, "labels" [N] int64 and the least total of each round, "objective"
/// [rounds] float64. A round is a slice.
[[nodiscard]] program_ref target_program(model_ref net, const target_settings& with);

} // namespace mneme
