/// operator_work: how much an operator's call computes, before it is made.
#pragma once
#include "runtime/modules/contracts/operator_call.hpp"
namespace mneme {

/// About as many multiplications as the call makes, never far fewer: convolutions, products, attention, recurrent
/// layers and pools by their sizes, other operators by the numbers of their arguments.
[[nodiscard]] double work_of_call(const operator_call& call);

} // namespace mneme
