/// Cross-entropy as ATen computes it: what other devices run, and what defines the kernel of a CPU.
#pragma once
#include "runtime/method/training.hpp"
namespace mneme {

[[nodiscard]] loss_output composite_cross_entropy(const loss_input& in);

} // namespace mneme
