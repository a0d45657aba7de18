/// untrained_layers: counts the layers of a TorchScript module that training leaves unchanged.
#pragma once
#include <cstdint>
#include <string>
namespace torch::jit {
struct Graph;
} // namespace torch::jit
namespace mneme {

/// Counts of layers that behave in training as in evaluation, because the module stays in evaluation mode.
struct untrained_layers {
  std::int64_t dropouts = 0;         ///< Dropout layers with a rate above 0.
  std::int64_t batch_norms = 0;      ///< Batch norms, which keep the file's running statistics.
  std::int64_t constant_tensors = 0; ///< Weights that torch.jit.freeze has turned into constants.
};

/// Counts the untrained layers of a graph. @param graph forward() with all calls inlined, in evaluation mode
[[nodiscard]] untrained_layers untrained_layers_of(const torch::jit::Graph& graph);

/// One warning sentence with the counts; "" if every layer is trained.
[[nodiscard]] std::string untrained_text(const untrained_layers& layers);

} // namespace mneme
