/// script_graph: forward() of a TorchScript module as a pure function of rows and tensors.
#pragma once
#include "runtime/modules/module_graph.hpp"
#include <c10/core/Device.h>
#include <memory>
#include <tl/expected.hpp>
namespace torch::jit {
struct Graph;
struct Module;
} // namespace torch::jit
namespace mneme {

/// Const and shared by all threads. LibTorch's interpreter runs the graph operator by operator, without its profiling
/// executor and fuser, so that earlier calls cannot change how a result is computed.
class script_graph final : public module_graph {
public:
  /// Reads a file written by torch.jit.save and sets the module to evaluation mode. Returns all errors on failure.
  /// forward() must take and return one tensor, draw no random numbers, and write to no member. The code is evaluated
  /// only if module_errors() and operator_errors() are empty. Operators with a contract (operator_contracts.hpp)
  /// are checked before every call. @pre archive_errors() is empty
  /// @param checked false skips these checks; for tests of the sandbox only
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>>
  read(std::span<const std::uint8_t> file, const at::Device& device, bool checked = true);

  /// The tensors that forward() reads, in the order of PyTorch's state_dict. A tied tensor has its first name.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept override { return tensors_; }
  using module_graph::run;
  /// Always runs in evaluation mode, regardless of `mode`. Autograd records the operators if it is enabled on the
  /// calling thread. Throws if a contract rejects a call.
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                               const module_mode& mode) const override;
  /// The module's member `rows`, a list of four numbers; empty if there is none.
  [[nodiscard]] std::vector<std::int64_t> own_rows() const override { return own_rows_; }
  [[nodiscard]] untrained_layers untrained() const override { return untrained_; }
  [[nodiscard]] std::string deprecation() const override;

private:
  struct compiled;
  /// Implements read(); exceptions of LibTorch pass through.
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>>
  read_by_torch(std::span<const std::uint8_t> file, const at::Device& device, bool checked);
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>>
  with_tensors(const torch::jit::Module& module, const std::shared_ptr<torch::jit::Graph>& graph,
               const std::vector<c10::IValue>& members);

  std::shared_ptr<const compiled> code_{};
  std::vector<held_tensor> tensors_{};
  std::vector<std::int64_t> own_rows_{};
  untrained_layers untrained_{};
};

} // namespace mneme
