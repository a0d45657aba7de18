/// graph_check: a module that LibTorch has loaded, looked at before anything of it runs.
#pragma once
#include <string>
#include <vector>
namespace torch::jit {
struct Graph;
struct Module;
struct Node;
} // namespace torch::jit
namespace mneme {

/// Why forward() may not be looked into; none: it may. Members have the types that their classes say, which LibTorch
/// relies on and does not compare; and forward() has at most a million nodes when every call in it is replaced by what
/// is called.
[[nodiscard]] std::vector<std::string> module_refusals(const torch::jit::Module& module);

/// Why a graph without calls may not be evaluated, not even in parts: operators that is_allowed_operator() does not
/// know, calls that are left, and casts that LibTorch takes the code's word for, but for numbers, texts and tensors.
[[nodiscard]] std::vector<std::string> operator_refusals(const torch::jit::Graph& graph);

/// Where a node was written, " (name.py:12)", or "".
[[nodiscard]] std::string place_of(const torch::jit::Node& node);

} // namespace mneme
