#include "runtime/method/training_losses.hpp"
#include <algorithm>
namespace mneme {

void training_losses::add(std::int64_t training_rows, double loss_mean, std::string_view only_term) {
  if (training_rows == 0)
    return;
  const auto weighted = static_cast<double>(training_rows) * loss_mean;
  rows += static_cast<double>(training_rows);
  sum += weighted;
  sum_of(only_term) += weighted;
}

void training_losses::add(std::int64_t training_rows, double loss_mean,
                          const std::map<std::string, double>& term_means) {
  if (training_rows == 0)
    return;
  const auto weight = static_cast<double>(training_rows);
  rows += weight;
  sum += weight * loss_mean;
  for (const auto& [name, value] : term_means)
    sum_of(name) += weight * value;
}

void training_losses::add(const training_losses& others) {
  rows += others.rows;
  sum += others.sum;
  for (const auto& other : others.terms)
    sum_of(other.name) += other.sum;
}

/// Reference to the sum of a term, which is added as 0 if it is new.
double& training_losses::sum_of(std::string_view name) {
  for (auto& known : terms)
    if (known.name == name)
      return known.sum;
  terms.push_back({.name = std::string(name)});
  return terms.back().sum;
}

std::optional<double> training_losses::mean() const { return empty() ? std::nullopt : std::optional(sum / rows); }

std::map<std::string, double> training_losses::term_means() const {
  std::map<std::string, double> means;
  for (const auto& known : terms)
    means[known.name] = known.sum / rows;
  return means;
}

void training_losses::persist(archive& state) {
  std::uint64_t count = terms.size();
  state(rows)(sum)(count);
  if (state.loading())
    terms.clear(); // memory grows with the bytes actually read, so a forged count allocates nothing
  for (std::uint64_t i = 0; i < count; ++i) {
    if (state.loading())
      terms.push_back({});
    state(terms[i].name)(terms[i].sum);
  }
}

} // namespace mneme
