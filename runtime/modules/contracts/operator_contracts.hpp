/// operator_contracts: conditions on the arguments of LibTorch's operators that their kernels do not check themselves.
#pragma once
#include "runtime/modules/contracts/operator_call.hpp"
namespace mneme {

/// Looks at the arguments of a call before the operator runs. Without it the kernels of LibTorch 2.11 would read or
/// write beyond a tensor, divide by zero, or take memory and time without bound. One list for every reader of foreign
/// nets: a contract reads argument names and values, and does not depend on TorchScript.
struct operator_contract {
  /// Why the call must not be made, as a sentence; "": it may be made.
  std::string (*error)(const operator_call& call) = nullptr;
  /// Bytes that the result takes outside of LibTorch's allocator: lists, texts, headers of tensors. nullptr: none.
  std::int64_t (*bytes)(const operator_call& call) = nullptr;
};

/// The contract of an operator and overload; nullptr if LibTorch's own checks are enough.
[[nodiscard]] const operator_contract* find_contract(const c10::FunctionSchema& schema);

} // namespace mneme
