/// graph_check: checks a loaded TorchScript module before any of it runs.
#pragma once
#include <string>
#include <vector>
namespace torch::jit {
struct Graph;
struct Module;
struct Node;
} // namespace torch::jit
namespace mneme {

/// Returns the reasons to reject a module; empty if its graph may be inspected. Members must have the types that their
/// classes declare, since LibTorch assumes this without a check. After inlining, forward() may have at most a million
/// nodes.
[[nodiscard]] std::vector<std::string> module_errors(const torch::jit::Module& module);

/// Returns the reasons why no part of a graph may be evaluated. Rejected are operators outside of
/// is_allowed_operator(), calls that were not inlined, and unchecked casts to types other than numbers, strings and
/// tensors.
[[nodiscard]] std::vector<std::string> operator_errors(const torch::jit::Graph& graph);

/// Source location of a node, such as " (name.py:12)"; "" if unknown.
[[nodiscard]] std::string place_of(const torch::jit::Node& node);

} // namespace mneme
