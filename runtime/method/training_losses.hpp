/// training_losses: what local trainings say of their loss, each weighted by the rows that it trained on.
#pragma once
#include "runtime/base/archive.hpp"
#include <map>
#include <optional>
#include <string>
namespace mneme {

/// Sums over trainings, from which means follow. They depend on the order in which trainings are added.
struct training_losses {
  double rows = 0.0;                     ///< Those of all trainings.
  double sum = 0.0;                      ///< Over trainings: rows * mean loss.
  std::map<std::string, double> terms{}; ///< The same of each term of the loss, by name.

  /// A training on so many rows. Without rows nothing is added.
  void add(std::int64_t training_rows, double loss_mean, const std::map<std::string, double>& term_means);
  void add(const training_losses& others);
  [[nodiscard]] bool empty() const noexcept { return rows == 0.0; }
  /// Mean over rows; null without rows.
  [[nodiscard]] std::optional<double> mean() const;
  /// The same of each term: a training without the term counts as 0 in it, so the means of all terms sum up to mean().
  [[nodiscard]] std::map<std::string, double> term_means() const;

  void persist(archive& state) { state(rows)(sum)(terms); }
};

/// A program whose declared outcome has a tensor of this name and of one element tells with it the mean loss of what it
/// has trained; tensors "training_loss.NAME" tell the terms. It counts by the rows of the client.
inline constexpr const char* training_loss_tensor = "training_loss";

} // namespace mneme
