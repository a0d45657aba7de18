/// training_losses: what local trainings say of their loss, each weighted by the rows that it trained on.
#pragma once
#include "runtime/base/archive.hpp"
#include <c10/util/SmallVector.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
namespace mneme {

/// Sums over trainings, from which means follow. They depend on the order in which trainings are added.
struct training_losses {
  struct term {
    std::string name{};
    double sum = 0.0;
  };
  double rows = 0.0; ///< Those of all trainings.
  double sum = 0.0;  ///< Over trainings: rows * mean loss.
  /// The same of each term of the loss, each name once. Every delivered upload has them, nearly always one: a term lies
  /// within, and a name of 15 letters takes no memory of its own.
  c10::SmallVector<term, 1> terms{};

  /// A training on so many rows, whose loss is one term. Without rows nothing is added.
  void add(std::int64_t training_rows, double loss_mean, std::string_view only_term);
  /// The same of a loss that is the sum of several.
  void add(std::int64_t training_rows, double loss_mean, const std::map<std::string, double>& term_means);
  void add(const training_losses& others);
  [[nodiscard]] bool empty() const noexcept { return rows == 0.0; }
  /// Mean over rows; null without rows.
  [[nodiscard]] std::optional<double> mean() const;
  /// The same of each term: a training without the term counts as 0 in it, so the means of all terms sum up to mean().
  [[nodiscard]] std::map<std::string, double> term_means() const;

  void persist(archive& state);

private:
  [[nodiscard]] double& sum_of(std::string_view name);
};

/// A program whose declared outcome has a tensor of this name and of one element tells with it the mean loss of what it
/// has trained; tensors "training_loss.NAME" tell the terms. It counts by the rows of the client.
inline constexpr const char* training_loss_tensor = "training_loss";

} // namespace mneme
