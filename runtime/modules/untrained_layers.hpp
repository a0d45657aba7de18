/// untrained_layers: what of a TorchScript module does not train although its parameters do.
#pragma once
#include <cstdint>
#include <string>
namespace torch::jit {
struct Graph;
} // namespace torch::jit
namespace mneme {

/// How many layers of forward() do in training what they do in evaluation, since modules stay in that mode.
struct untrained_layers {
  std::int64_t dropouts = 0;         ///< That would drop something: their chance is not 0.
  std::int64_t batch_norms = 0;      ///< They keep the file's running statistics.
  std::int64_t constant_tensors = 0; ///< Weights that torch.jit.freeze has made part of the code.
};

/// @param graph forward() in one piece, as it runs in evaluation, calls inlined
[[nodiscard]] untrained_layers untrained_layers_of(const torch::jit::Graph& graph);

/// One sentence for the user, with the numbers; "": everything trains.
[[nodiscard]] std::string untrained_text(const untrained_layers& layers);

} // namespace mneme
