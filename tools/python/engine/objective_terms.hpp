/// objective_terms: objectives of training as methods in Python name them: terms with factors, computed for all clients
/// of a batch at once.
#pragma once
#include "strategies/baselines/old_knowledge.hpp"
#include "tools/python/engine/python_loss.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// The terms of an objective, each at most once. A factor of the objective multiplies every one of them.
struct objective_terms {
  struct written_term {
    std::shared_ptr<const python_loss> loss{};
    double factor = 1.0;
  };
  std::optional<double> cross_entropy{}; ///< Its factor.
  std::optional<double> proximal{};      ///< mu times its factor: mu / 2 |w - start|^2 (Li et al. 2020, eq. 2).
  /// Its factor: the gradient of every step gains side["correction"] [P] (Karimireddy et al. 2020, SCAFFOLD, eq. 3).
  std::optional<double> correction{};
  /// weight * KD over the classes that the job's teacher shows (Li and Hoiem 2018, "Learning without Forgetting", eqs.
  /// 2 and 3), which are the first ones of the loss; the weight contains the factor.
  ///     KD = -sum_c softmax(z_teacher / T)_c log softmax(z / T)_c, not multiplied by T^2.
  std::optional<distillation_options> distillation{};
  std::vector<written_term> written{}; ///< Losses in Python.

  /// Throws std::invalid_argument unless the factor is finite.
  [[nodiscard]] objective_terms times(double factor) const;
  /// The union: a term of both counts once. Throws std::invalid_argument where its factor or parameters differ.
  [[nodiscard]] objective_terms plus(const objective_terms& others) const;
  /// Each term with its factor and parameters; names losses in Python by their digest.
  [[nodiscard]] std::string text() const;
};

/// The loss that computes these terms. @pre there is one
[[nodiscard]] loss_ref objective_of(const objective_terms& terms);

/// Cross-entropy + the proximal term; throws std::invalid_argument unless mu is finite and >= 0.
[[nodiscard]] objective_terms proximal_terms(double mu);
/// Cross-entropy + the correction.
[[nodiscard]] objective_terms corrected_terms();
/// Distillation alone; throws std::invalid_argument unless both are finite, weight >= 0 and temperature > 0.
[[nodiscard]] objective_terms distillation_terms(double weight, double temperature);

} // namespace mneme
