/// training_losses: mean losses of local trainings, weighted by their numbers of rows.
#pragma once
#include "runtime/base/archive.hpp"
#include <c10/util/SmallVector.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// Sums over trainings, from which means are computed. The sums depend on the order of addition.
struct training_losses {
  struct term {
    std::string name{};
    double sum = 0.0;
  };
  double rows = 0.0; ///< Total rows of all trainings.
  double sum = 0.0;  ///< Sum over trainings of rows * mean loss.
  /// Sum over trainings of rows * mean, for each term of the loss; names are unique. A list with one term of a short
  /// name, the usual case, allocates no memory.
  c10::SmallVector<term, 1> terms{};

  /// Adds a training with a loss of one term. Does nothing if training_rows is 0.
  void add(std::int64_t training_rows, double loss_mean, std::string_view only_term);
  /// Adds a training with a loss of several terms. Does nothing if training_rows is 0.
  void add(std::int64_t training_rows, double loss_mean, const std::map<std::string, double>& term_means);
  /// Adds the sums of other trainings.
  void add(const training_losses& others);
  [[nodiscard]] bool empty() const noexcept { return rows == 0.0; }
  /// Mean loss over rows. Returns nullopt if there are no rows.
  [[nodiscard]] std::optional<double> mean() const;
  /// Mean of each term over all rows. A training without the term counts as 0, so that the means sum up to mean().
  [[nodiscard]] std::map<std::string, double> term_means() const;

  void persist(archive& state);

private:
  [[nodiscard]] double& sum_of(std::string_view name);
};

/// Name of the tensor, with one element, in which a program returns the mean loss of its training. Tensors named
/// "training_loss.NAME" return the terms. The client's number of rows is the weight.
inline constexpr const char* training_loss_tensor = "training_loss";

} // namespace mneme
