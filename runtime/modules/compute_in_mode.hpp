/// compute_in_mode: calls whose result differs between training and evaluation mode.
#pragma once
#include "runtime/modules/exported_program.hpp"
namespace mneme {

/// Makes the call, and leaves its results on the stack. In evaluation mode norms take their running statistics and
/// nothing is dropped; a draw is its mean, with which stochastic depth leaves values as they are. In training mode the
/// calls that the file has in training mode move running statistics and draw masks from mode.stream.
void compute_in_mode(const exported_call& call, std::vector<c10::IValue>& stack, const module_mode& mode);

} // namespace mneme
