#include "strategies/lga/round_rate.hpp"
namespace mneme {
namespace {

constexpr std::int64_t period = 200; // epochs, in the released programs

double factor_from(std::int64_t epoch_of_task) {
  return epoch_of_task >= 180 ? 1.0 / 125 : epoch_of_task >= 150 ? 1.0 / 25 : epoch_of_task >= 100 ? 1.0 / 5 : 1.0;
}

} // namespace

std::vector<rate_stretch> rates_of_round(rate_schedule kind, std::int64_t round_of_task, std::int64_t epochs) {
  std::vector<rate_stretch> stretches;
  double factor = 1.0;
  for (std::int64_t e = 0; e < epochs; ++e) {
    const auto at = (round_of_task * epochs + e) % period;
    const bool decays = at == 100 || at == 150 || at == 180;
    if (kind == rate_schedule::persistent_decay || (kind == rate_schedule::code_quirk && decays))
      factor = factor_from(at);
    if (!stretches.empty() && stretches.back().factor == factor)
      ++stretches.back().epochs;
    else
      stretches.push_back({.epochs = 1, .factor = factor});
  }
  return stretches;
}

} // namespace mneme
