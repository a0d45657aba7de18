/// native_graph: what the compiled forward() of an AOTInductor package computes.
#pragma once
#include "runtime/modules/module_graph.hpp"
#include "runtime/modules/native_package.hpp"
#include <memory>
namespace mneme {

/// Code that LibTorch's loader has opened in this process and that may do whatever the process may. A call computes on
/// the calling thread; nothing can be derived through it.
class native_graph final : public module_graph {
public:
  /// Loads the code. Fails in words, all differences at once: forward() takes one tensor and returns one.
  /// @pre read_package() has made the package
  [[nodiscard]] static tl::expected<native_graph, std::vector<std::string>> load(const native_package& package);

  /// Its constants by their names, as far as it tells them.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept override { return tensors_; }
  /// @pre as many rows as rows_of_call() says. Throws where autograd follows the rows, too.
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values) const override;
  [[nodiscard]] bool compiled_in() const noexcept override { return true; }
  [[nodiscard]] std::int64_t rows_of_call() const noexcept override { return rows_of_call_; }
  [[nodiscard]] std::vector<std::string> overwritten() const override;

private:
  struct loaded;
  native_graph() = default;

  std::shared_ptr<loaded> code_{};
  std::vector<held_tensor> tensors_{};
  std::int64_t rows_of_call_ = 0;
};

} // namespace mneme
