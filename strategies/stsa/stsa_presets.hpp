/// stsa_presets: STSA's settings as the paper and its public code have them.
#pragma once
#include "runtime/method/strategy.hpp"
namespace mneme {

[[nodiscard]] std::vector<preset> stsa_presets();

} // namespace mneme
