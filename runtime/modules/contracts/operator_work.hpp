/// operator_work: estimates the cost of an operator call before it is made.
#pragma once
#include "runtime/modules/contracts/operator_call.hpp"
namespace mneme {

/// Estimated number of multiplications; never far below the true number. Convolutions, matrix products, attention,
/// recurrent layers and pooling are estimated from their sizes, all other operators from their element counts.
[[nodiscard]] double work_of_call(const operator_call& call);

} // namespace mneme
