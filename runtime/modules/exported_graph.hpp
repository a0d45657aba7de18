/// exported_graph: a program of torch.export as a module_graph.
#pragma once
#include "runtime/modules/exported_program.hpp"
#include <memory>
#include <tl/expected.hpp>
namespace mneme {

/// Calls go one by one through LibTorch's dispatcher, in the order of the file; autograd follows them where the calling
/// thread has it on. Before each call its contract is checked and its work is counted. Nothing of the file is code.
class exported_graph final : public module_graph {
public:
  /// Reads the bytes of a file that torch.export.save has written. Fails with the reason.
  [[nodiscard]] static tl::expected<exported_graph, std::string>
  read(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device);

  using module_graph::run;
  /// Tensors that calls read, in the order of the file; tied weights are one, with the first name.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept override { return program_->tensors; }
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                               const module_mode& mode) const override;
  [[nodiscard]] bool has_training_mode() const override { return has_training_mode_; }
  [[nodiscard]] std::int64_t draws() const override { return program_->draws; }
  [[nodiscard]] std::string unseeded_draw() const override { return program_->unseeded_draw; }
  [[nodiscard]] std::int64_t fixed_rows() const override { return program_->fixed_rows; }
  /// The values of a buffer `rows` of four integers, which forward() need not read.
  [[nodiscard]] std::vector<std::int64_t> own_rows() const override { return program_->own_rows; }

private:
  std::shared_ptr<const exported_program> program_{};
  bool has_training_mode_ = false;
};

} // namespace mneme
