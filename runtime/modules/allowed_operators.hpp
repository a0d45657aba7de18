/// allowed_operators: the allowlist of LibTorch operators that a module's code may call.
#pragma once
#include <string_view>
namespace mneme {

/// True if the allowlist contains the operator. A listed operator computes its results from its arguments only. It uses
/// no files, processes or unchecked views. Operators that draw random numbers are listed, because most nets contain
/// dropout; the graph check rejects those that remain in evaluation mode. Uninitialized tensors are replaced by zeros.
/// @param name qualified name, such as "aten::conv2d"
[[nodiscard]] bool is_allowed_operator(std::string_view name);

} // namespace mneme
