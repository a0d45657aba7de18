/// code_limits: rejects excessively nested code before LibTorch's recursive parser reads it.
#pragma once
#include <string>
#include <string_view>
namespace mneme {

/// Returns the reason to reject TorchScript code; "" if it is within the limits. LibTorch's parser and compiler recurse
/// once per bracket, operator and indentation level. 20,000 levels overflow a stack of 8 MiB; 2,000 do not. An empty
/// subscript `x[]` crashes the parser and is rejected as well.
[[nodiscard]] std::string code_limit_error(std::string_view code);

} // namespace mneme
