/// checked_calls: TorchScript graphs whose operators are called only with arguments that their contracts accept.
#pragma once
#include <memory>
namespace torch::jit {
struct Graph;
} // namespace torch::jit
namespace mneme {

/// From now on LibTorch's operators on numbers and texts that have a contract check it themselves, in the whole
/// process. LibTorch evaluates them with constants while it reads the code of a module. Call it before a file is
/// loaded.
void check_number_operators();

/// Evaluates operators whose arguments are constants, as torch::jit::ConstantPropagation() does. One whose contract
/// refuses these arguments is left in the graph, so that a run of it fails with the reason. @pre the graph has no calls
void fold_checked_constants(std::shared_ptr<torch::jit::Graph>& graph);

/// Puts a check before each operator that has a contract: it sees the arguments of every call just before the operator
/// does. Where the contract refuses them, the call throws std::runtime_error with the contract's sentence and the line
/// of code. Bytes that the contract counts are charged to module_memory.
void insert_call_checks(torch::jit::Graph& graph);

} // namespace mneme
