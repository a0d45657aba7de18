/// module_graph: what forward() of a module computes, as a function of rows and of its tensors.
#pragma once
#include "runtime/modules/untrained_layers.hpp"
#include <ATen/core/Tensor.h>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
namespace mneme {

/// Const, shared by all threads: a call leaves nothing behind that another one sees.
class module_graph {
public:
  /// A parameter or buffer that forward() reads.
  struct held_tensor {
    std::string name{}; ///< As in PyTorch's state_dict.
    at::Tensor value{};
    bool parameter = false; ///< Else a buffer.
    bool trains = true;     ///< A parameter's requires_grad in the file.
  };

  module_graph() = default;
  virtual ~module_graph() = default;

  [[nodiscard]] virtual const std::vector<held_tensor>& tensors() const noexcept = 0;
  /// forward(rows), with `values` in place of the tensors that it holds, in their order; nothing where they are
  /// compiled_in(). Throws std::exception.
  [[nodiscard]] virtual at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values) const = 0;

  /// Its tensors are part of its code: others cannot stand in for them, and nothing can be derived.
  [[nodiscard]] virtual bool compiled_in() const noexcept { return false; }
  /// Rows of every call; 0: any number.
  [[nodiscard]] virtual std::int64_t rows_of_call() const noexcept { return 0; }
  /// B, C, H, W: the most rows of a call and their shape, where the module says so itself; else empty.
  [[nodiscard]] virtual std::vector<std::int64_t> own_rows() const { return {}; }
  /// Layers that do not train with the parameters; none where nothing can be trained.
  [[nodiscard]] virtual untrained_layers untrained() const { return {}; }
  /// Names of compiled tensors whose values are no longer those of the file.
  [[nodiscard]] virtual std::vector<std::string> overwritten() const { return {}; }

protected: // copied as what they are
  module_graph(const module_graph&) = default;
  module_graph(module_graph&&) = default;
  module_graph& operator=(const module_graph&) = default;
  module_graph& operator=(module_graph&&) = default;
};

} // namespace mneme
