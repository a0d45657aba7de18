/// operator_contracts: argument conditions that the kernels of LibTorch's operators do not check themselves.
#pragma once
#include "runtime/modules/contracts/operator_call.hpp"
namespace mneme {

/// Checks the arguments of a call before the operator runs. Without these checks, kernels of LibTorch 2.11 would access
/// memory out of bounds, divide by zero, or use unbounded memory or time.
struct operator_contract {
  /// Returns the reason to reject the call as a sentence; "" if the call is allowed.
  std::string (*error)(const operator_call& call) = nullptr;
  /// Upper bound on the bytes of tensor headers, which the call allocates outside of LibTorch's allocator. nullptr if
  /// the call allocates none.
  std::int64_t (*bytes)(const operator_call& call) = nullptr;
};

/// The contract of an operator and overload. Returns nullptr if LibTorch's own checks are sufficient.
[[nodiscard]] const operator_contract* find_contract(const c10::FunctionSchema& schema);

} // namespace mneme
