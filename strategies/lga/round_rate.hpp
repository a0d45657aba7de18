/// round_rate: the learning rates of GLFC's and LGA's released programs within a round.
#pragma once
#include <cstdint>
#include <vector>
namespace mneme {

enum class rate_schedule : std::uint8_t {
  scenario,         ///< That of [training].
  code_quirk,       ///< A decay holds for the rest of its round only, because each round makes a new optimizer.
  persistent_decay, ///< A decay holds for the rest of the task.
};

/// So many epochs at one rate, as a factor of the first.
struct rate_stretch {
  std::int64_t epochs = 0;
  double factor = 1.0;
  bool operator==(const rate_stretch&) const = default;
};

/// The stretches of a round, in their order. Epoch e of round r of a task is the e' = `epochs` r + e -th of the task;
/// the rate is divided by 5, 25 and 125 when e' is 100, 150 and 180 (mod 200), as the released programs have it.
[[nodiscard]] std::vector<rate_stretch> rates_of_round(rate_schedule kind, std::int64_t round_of_task,
                                                       std::int64_t epochs);

} // namespace mneme
