/// staleness: weight of an upload, given the age of the model from which its client started.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Weight s_k of an upload that started from a model s = `steps` server steps old (Xie, Koyejo and Gupta 2019, section
/// 5.2). polynomial: (1 + s)^-a; constant: 1; hinge: 1 if s <= b, else 1 / (a (s - b) + 1). @pre steps >= 0
[[nodiscard]] double staleness_weight(const rounds_section& rule, std::int64_t steps);

} // namespace mneme
