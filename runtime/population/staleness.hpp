/// staleness: how much an upload counts whose start the server has left behind.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// s_k of an upload that is `steps` server steps old, by the rule of the scenario (Xie, Koyejo and Gupta 2019, section
/// 5.2): (1 + s)^-a, 1, or 1 up to b steps and 1 / (a (s - b) + 1) beyond. @pre steps >= 0
[[nodiscard]] double staleness_weight(const rounds_section& rule, std::int64_t steps);

} // namespace mneme
