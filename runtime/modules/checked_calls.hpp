/// checked_calls: adds contract checks to the operator calls of TorchScript graphs.
#pragma once
#include <memory>
namespace torch::jit {
struct Graph;
} // namespace torch::jit
namespace mneme {

/// Replaces LibTorch's operators on numbers and strings by versions that check their contracts, for the whole process.
/// LibTorch evaluates these operators on constants while it parses a module's code. Call this before loading a file.
void check_number_operators();

/// Folds operators with constant arguments, like torch::jit::ConstantPropagation(). A call that violates its contract
/// stays in the graph, so that running the graph fails with the reason. @pre all function calls are inlined
void fold_checked_constants(std::shared_ptr<torch::jit::Graph>& graph);

/// Inserts a check before each operator that has a contract. The check receives the arguments of every call. If the
/// contract rejects them, the call throws std::runtime_error with the contract's message and the source line. Bytes
/// outside of LibTorch's allocator are charged to module_memory.
void insert_call_checks(torch::jit::Graph& graph);

} // namespace mneme
