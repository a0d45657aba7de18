/// stsa_presets: settings of STSA in the paper and in the official code.
#pragma once
#include "runtime/method/strategy.hpp"
namespace mneme {

[[nodiscard]] std::vector<preset> stsa_presets();

} // namespace mneme
