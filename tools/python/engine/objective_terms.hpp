/// objective_terms: training objectives of Python methods as weighted sums of terms, computed for all clients of a
/// batch together.
#pragma once
#include "strategies/baselines/old_model_distillation.hpp"
#include "tools/python/engine/python_loss.hpp"
#include <optional>
#include <vector>
namespace mneme {

/// Terms of an objective, each at most once. A factor of the objective multiplies all terms.
struct objective_terms {
  struct written_term {
    std::shared_ptr<const python_loss> loss{};
    double factor = 1.0;
  };
  /// factor / 2 sum_i importance_i (w_i - anchor_i)^2 (Kirkpatrick et al. 2017, eq. 3).
  struct quadratic_term {
    at::Tensor anchor{};     ///< [P]; undefined: the weights at the start of the job.
    at::Tensor importance{}; ///< [P] float32
    double factor = 1.0;
  };
  std::optional<double> cross_entropy{}; ///< Factor of the cross-entropy.
  std::optional<double> proximal{};      ///< mu times the factor: mu / 2 |w - start|^2 (Li et al. 2020, eq. 2).
  /// Factor of side["correction"] [P], added to the gradient of every step (Karimireddy et al. 2020, SCAFFOLD, eq. 3).
  std::optional<double> correction{};
  /// weight * KD over the classes of the job's teacher, which are the first classes of the loss (Li and Hoiem 2018,
  /// "Learning without Forgetting", eqs. 2 and 3). The weight includes the objective's factor.
  ///     KD = -sum_c softmax(z_teacher / T)_c log softmax(z / T)_c, without the factor T^2
  std::optional<distillation_options> distillation{};
  std::vector<written_term> written{}; ///< Losses written in Python.
  std::vector<quadratic_term> quadratic{};

  /// Multiplies all terms. Throws std::invalid_argument if the factor is not finite.
  [[nodiscard]] objective_terms times(double factor) const;
  /// Returns the union of both. A term that both have is included once. Throws std::invalid_argument if its factors or
  /// parameters differ.
  [[nodiscard]] objective_terms plus(const objective_terms& others) const;
  /// True if a term has a value for each row, so that there is a loss and not only a penalty.
  [[nodiscard]] bool has_rows() const;
  /// True if a term compares two views of the rows.
  [[nodiscard]] bool reads_views() const;
  /// True if a term reads the job's teacher.
  [[nodiscard]] bool reads_teacher() const;
  /// Adds the tensors of the quadratic terms to the tensors of a job, under names that no user's tensor has. The added
  /// tensors are not part of the loss's identity, so that jobs with other tensors share a batch.
  void add_tensors(tensor_map& auxiliary) const;
  /// Lists the terms with their factors and parameters. Losses written in Python are listed by their digests.
  [[nodiscard]] std::string text() const;
};

/// Returns a loss that computes the terms. @pre there is at least one term
[[nodiscard]] loss_ref objective_of(const objective_terms& terms);

/// Cross-entropy and proximal term. Throws std::invalid_argument if mu is negative or not finite.
[[nodiscard]] objective_terms proximal_terms(double mu);
/// Cross-entropy and correction, each with factor 1.
[[nodiscard]] objective_terms corrected_terms();
/// Distillation only. Throws std::invalid_argument unless both values are finite, weight >= 0 and temperature > 0.
[[nodiscard]] objective_terms distillation_terms(double weight, double temperature);

/// A quadratic penalty without cross-entropy. Throws std::invalid_argument for tensors that are not float32 [P].
[[nodiscard]] objective_terms quadratic_terms(at::Tensor anchor, at::Tensor importance);

} // namespace mneme
