/// allowed_operators: the allowlist of LibTorch operators that an exported program may call.
#pragma once
#include <string_view>
namespace mneme {

/// True if the allowlist contains the operator. A listed operator computes its results from its arguments only. It uses
/// no files, processes or unchecked views. Operators that draw random numbers are listed, because most nets contain
/// dropout; the reader rejects programs that would draw in evaluation mode. @param name without namespace: "conv2d"
[[nodiscard]] bool is_allowed_operator(std::string_view name);

} // namespace mneme
