#include "runtime/method/training_losses.hpp"
namespace mneme {

void training_losses::add(std::int64_t training_rows, double loss_mean,
                          const std::map<std::string, double>& term_means) {
  if (training_rows == 0)
    return;
  const auto weight = static_cast<double>(training_rows);
  rows += weight;
  sum += weight * loss_mean;
  for (const auto& [name, value] : term_means)
    terms[name] += weight * value;
}

void training_losses::add(const training_losses& others) {
  rows += others.rows;
  sum += others.sum;
  for (const auto& [name, value] : others.terms)
    terms[name] += value;
}

std::optional<double> training_losses::mean() const {
  return empty() ? std::nullopt : std::optional(sum / rows);
}

std::map<std::string, double> training_losses::term_means() const {
  auto means = terms;
  for (auto& [name, value] : means)
    value /= rows;
  return means;
}

} // namespace mneme
