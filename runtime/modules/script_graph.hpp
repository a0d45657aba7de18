/// script_graph: what forward() of a TorchScript module computes, as a function of its tensors and nothing else.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>
namespace torch::jit {
struct Graph;
struct Module;
} // namespace torch::jit
namespace mneme {

/// Const, shared by all threads. LibTorch's interpreter runs the graph as it was written, operator by operator: no
/// profile of earlier calls, no fuser and no second version of the code decide what a call computes.
class script_graph {
public:
  /// A parameter or buffer that the graph reads.
  struct held_tensor {
    std::string name{}; ///< As in PyTorch's state_dict.
    at::Tensor value{};
    bool parameter = false; ///< Else a buffer.
  };

  /// Reads the bytes of a file that torch.jit.save has written; the module is put into evaluation mode. Fails in words,
  /// all differences at once: forward() takes one tensor and returns one, draws nothing, writes to no member, and
  /// touches nothing outside. @pre the bytes are those of a whole archive
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>> read(std::span<const std::uint8_t> file,
                                                                                 const at::Device& device);

  /// Those that forward() reads, in the order of PyTorch's state_dict; one that has several names has the first.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept { return tensors_; }
  /// forward(rows), with `values` in place of the tensors that it holds, in their order. Autograd follows the operators
  /// where the calling thread has it on. Throws std::exception.
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values) const;

private:
  struct compiled;
  [[nodiscard]] static tl::expected<script_graph, std::vector<std::string>>
  with_tensors(const torch::jit::Module& module, const std::shared_ptr<torch::jit::Graph>& graph,
               const std::vector<c10::IValue>& members);

  std::shared_ptr<const compiled> code_{};
  std::vector<held_tensor> tensors_{};
};

/// The sentence of an exception of LibTorch's, without its stack and the code around.
[[nodiscard]] std::string short_reason(const std::exception& thrown);

} // namespace mneme
