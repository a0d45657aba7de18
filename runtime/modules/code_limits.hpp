/// code_excess: code that no program writes, before LibTorch's parser recurses into it.
#pragma once
#include <string>
#include <string_view>
namespace mneme {

/// Why TorchScript code is none that a net has, in words; "": it may be. LibTorch's parser
/// and compiler go one call deeper with every bracket, operator and indentation; 20,000 of them end a stack of 8 MiB,
/// 2,000 do not. An element without an index, `x[]`, ends it as well.
[[nodiscard]] std::string code_excess(std::string_view code);

} // namespace mneme
