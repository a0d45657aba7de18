/// script_graph: what forward() of a TorchScript module computes, as a function of its tensors and nothing else.
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

/// Const, shared by all threads. LibTorch's interpreter runs the graph as it was written, operator by operator: no
/// profile of earlier calls, no fuser and no second version of the code decide what a call computes.
class script_graph final : public module_graph {
public:
  /// Reads the bytes of a file that torch.jit.save has written; the module is put into evaluation mode. Fails in words,
  /// all differences at once: forward() takes one tensor and returns one, draws nothing, writes to no member, and
  /// touches nothing outside. Nothing of it is evaluated before module_refusals() and operator_refusals() have found
  /// nothing. An operator with a contract (operator_contracts.hpp) is checked before every call.
  /// @pre archive_refusals() has none @param checked false only where a test shows what the cell alone holds
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>>
  read(std::span<const std::uint8_t> file, const at::Device& device, bool checked = true);

  /// In the order of PyTorch's state_dict; one that has several names has the first.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept override { return tensors_; }
  using module_graph::run;
  /// Autograd follows the operators where the calling thread has it on. Throws where a contract refuses a call.
  /// The module is in evaluation mode, whatever `mode` is.
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                               const module_mode& mode) const override;
  /// The member `rows`, a list of four numbers.
  [[nodiscard]] std::vector<std::int64_t> own_rows() const override { return own_rows_; }
  [[nodiscard]] untrained_layers untrained() const override { return untrained_; }
  [[nodiscard]] std::string deprecation() const override;

private:
  struct compiled;
  /// read(), of which LibTorch's exceptions are not yet words.
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
