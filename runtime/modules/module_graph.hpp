/// module_graph: what forward() of a module computes, as a function of rows and of its tensors.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/modules/untrained_layers.hpp"
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
namespace mneme {

/// The values that reached a batch normalization in a pass, by channel.
struct module_statistics {
  std::size_t mean = 0, variance = 0;        ///< The running statistics, among the graph's tensors.
  at::Tensor batch_mean{}, batch_variance{}; ///< [C]; the variance is biased.
  std::int64_t values = 0;                   ///< Number of values per channel.
  bool moves = false;                        ///< The layer was in training mode.
};

/// How a pass runs. The default is evaluation mode.
struct module_mode {
  bool training = false; ///< Layers that the file has in training mode are in it.
  rng_key stream{};      ///< Key of the dropout masks.
  /// [tensors] true: a buffer that does not move, so that its layer is in evaluation mode. Empty: all move.
  std::vector<bool> still{};
  std::int64_t statistics_moves = 1; ///< As in training_mode.
  /// Receives the statistics of batch normalizations, whose running statistics do not move then. Null: not wanted.
  std::vector<module_statistics>* statistics = nullptr;
};

/// Const and shared by all threads: a call has no effect on other calls.
class module_graph {
public:
  /// A parameter or buffer that forward() reads.
  struct held_tensor {
    std::string name{}; ///< As in PyTorch's state_dict.
    at::Tensor value{};
    bool parameter = false; ///< Else a buffer.
    bool trains = true;     ///< A parameter's requires_grad in the file.
    bool moves = false;     ///< A buffer that a call in training mode writes to: running statistics.
  };

  module_graph() = default;
  virtual ~module_graph() = default;

  [[nodiscard]] virtual const std::vector<held_tensor>& tensors() const noexcept = 0;
  /// forward(rows), with `values` in place of the tensors that it holds, in their order. In training mode, buffers that
  /// move are written. Throws std::exception.
  [[nodiscard]] virtual at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                                       const module_mode& mode) const = 0;
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values) const {
    return run(rows, values, {});
  }

  /// True if a pass in training mode differs from evaluation.
  [[nodiscard]] virtual bool has_training_mode() const { return false; }
  /// Masks that a pass in training mode draws.
  [[nodiscard]] virtual std::int64_t draws() const { return 0; }
  /// A call that draws from LibTorch's own generator in training mode, so that no run could be repeated; "" if there is
  /// none.
  [[nodiscard]] virtual std::string unseeded_draw() const { return {}; }
  /// B, C, H, W: the most rows of a call and their shape, where the module says so itself; else empty.
  [[nodiscard]] virtual std::vector<std::int64_t> own_rows() const { return {}; }
  /// Rows of the call that was exported, where their number was fixed; else 0.
  [[nodiscard]] virtual std::int64_t fixed_rows() const { return 0; }
  /// A sentence for the user about a format that a later version does not load; "": none.
  [[nodiscard]] virtual std::string deprecation() const { return {}; }
  /// Layers of the file that do not train with the parameters.
  [[nodiscard]] virtual untrained_layers untrained() const { return {}; }

protected: // copied as what they are
  module_graph(const module_graph&) = default;
  module_graph(module_graph&&) = default;
  module_graph& operator=(const module_graph&) = default;
  module_graph& operator=(module_graph&&) = default;
};

} // namespace mneme
