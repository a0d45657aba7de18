/// allowed_operators: the operators of LibTorch that code of a module may call.
#pragma once
#include <string_view>
namespace mneme {

/// True for the qualified name of an operator that computes its results from its arguments and does nothing besides:
/// no file, no process, no text, and no view whose bounds its caller vouches for. Those
/// that draw random numbers are among them, because dropout stands in every net's code; what is left of them in
/// evaluation is refused where the graph is read, and memory that nobody has written is zeros there. A name that is not
/// in the list is refused, whoever registers it.
/// @param name "aten::conv2d"
[[nodiscard]] bool is_allowed_operator(std::string_view name);

} // namespace mneme
