/// compute_in_mode: runs calls that differ between training and evaluation mode.
#pragma once
#include "runtime/modules/exported_program.hpp"
namespace mneme {

/// Makes the call and leaves its results on the stack. In evaluation mode norms use their running statistics, dropout
/// is the identity, and a random draw returns its mean. In training mode, calls that the file stores in training mode
/// update running statistics and draw masks from mode.stream.
void compute_in_mode(const exported_call& call, std::vector<c10::IValue>& stack, const module_mode& mode);

} // namespace mneme
