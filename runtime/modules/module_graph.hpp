/// module_graph: forward() of a module as a function of rows and of the module's tensors.
#pragma once
#include "runtime/base/rng.hpp"
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
namespace mneme {

/// Per-channel statistics of the values that a batch normalization received in one pass.
struct module_statistics {
  std::size_t mean = 0, variance = 0;        ///< Indices of the running statistics in the graph's tensors.
  at::Tensor batch_mean{}, batch_variance{}; ///< [C]; the variance is biased.
  std::int64_t values = 0;                   ///< Number of values per channel.
  bool moves = false;                        ///< True if the layer was in training mode.
  double momentum = 0.1;                     ///< Weight of this pass in an update of the running statistics.
};

/// Options of a forward pass. The default is evaluation mode.
struct module_mode {
  bool training = false; ///< Layers that the file stores in training mode run in training mode.
  rng_key stream{};      ///< Random key of the dropout masks.
  /// [tensors] True for a buffer that is not updated, so that its layer runs in evaluation mode. Empty: update all.
  std::vector<bool> still{};
  std::int64_t running_stats_updates = 1; ///< See training_mode.
  /// If not null, collects batch statistics; running statistics are not updated in that case.
  std::vector<module_statistics>* statistics = nullptr;
};

/// Const and shared by all threads. Calls do not affect each other.
class module_graph {
public:
  /// A parameter or buffer that forward() reads.
  struct held_tensor {
    std::string name{}; ///< Name in PyTorch's state_dict.
    at::Tensor value{};
    bool parameter = false; ///< True for a parameter, false for a buffer.
    bool trains = true;     ///< requires_grad of a parameter in the file.
    bool moves = false;     ///< True: calls in training mode update this buffer, which holds running statistics.
  };

  module_graph() = default;
  virtual ~module_graph() = default;

  /// Parameters and buffers that forward() reads; a tied tensor is listed once.
  [[nodiscard]] virtual const std::vector<held_tensor>& tensors() const noexcept = 0;
  /// Computes forward(rows). @param values replace the graph's tensors, in the order of tensors(); in training mode the
  /// pass updates the buffers among them. Throws std::exception on failure.
  [[nodiscard]] virtual at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                                       const module_mode& mode) const = 0;
  /// Computes forward(rows) in evaluation mode.
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values) const {
    return run(rows, values, {});
  }

  /// True if the results of training mode and evaluation mode differ.
  [[nodiscard]] virtual bool has_training_mode() const { return false; }
  /// Name of a dropout or batch norm in a program without training mode; "" if there is none.
  [[nodiscard]] virtual std::string untrained_layer() const { return {}; }
  /// Number of random masks drawn per pass in training mode.
  [[nodiscard]] virtual std::int64_t draws() const { return 0; }
  /// A call that uses LibTorch's own random generator in training mode, which would make runs irreproducible. Returns
  /// "" if there is none.
  [[nodiscard]] virtual std::string unseeded_draw() const { return {}; }
  /// [B, C, H, W] that the module declares: B is the largest batch. Empty if it declares none.
  [[nodiscard]] virtual std::vector<std::int64_t> own_rows() const { return {}; }
  /// Fixed batch size of the export; 0 if it is dynamic.
  [[nodiscard]] virtual std::int64_t fixed_rows() const { return 0; }

protected: // prevents slicing
  module_graph(const module_graph&) = default;
  module_graph(module_graph&&) = default;
  module_graph& operator=(const module_graph&) = default;
  module_graph& operator=(module_graph&&) = default;
};

} // namespace mneme
