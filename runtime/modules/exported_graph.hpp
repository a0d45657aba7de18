/// exported_graph: runs a program of torch.export as a module_graph.
#pragma once
#include "runtime/modules/exported_program.hpp"
#include <memory>
#include <tl/expected.hpp>
namespace mneme {

/// Makes the operator calls of the file in order, through LibTorch's dispatcher. Autograd records them if it is enabled
/// on the calling thread. Before each call, checks the call's contract and adds up its cost. Runs no code of the file.
class exported_graph final : public module_graph {
public:
  /// Reads a file written by torch.export.save. Returns the reason on failure.
  [[nodiscard]] static tl::expected<exported_graph, std::string>
  read(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries, const at::Device& device);

  using module_graph::run;
  /// The tensors that calls read, in file order. Tied weights are one tensor under their first name.
  [[nodiscard]] const std::vector<held_tensor>& tensors() const noexcept override { return program_->tensors; }
  [[nodiscard]] at::Tensor run(const at::Tensor& rows, std::span<const at::Tensor> values,
                               const module_mode& mode) const override;
  [[nodiscard]] bool has_training_mode() const override { return has_training_mode_; }
  [[nodiscard]] std::string untrained_layer() const override;
  [[nodiscard]] std::int64_t draws() const override { return program_->draws; }
  [[nodiscard]] std::string unseeded_draw() const override { return program_->unseeded_draw; }
  [[nodiscard]] std::int64_t fixed_rows() const override { return program_->fixed_rows; }
  /// The four integers of the buffer `rows`, if the file has one. forward() need not use it.
  [[nodiscard]] std::vector<std::int64_t> own_rows() const override { return program_->own_rows; }

  [[nodiscard]] const exported_program& program() const noexcept { return *program_; }
  /// Shapes of all tensors of a pass in evaluation mode, by slot; empty for integers. Throws std::exception on failure.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> sizes(const at::Tensor& rows) const;

  /// Computes a part of a program: the value in the slot part.result_slot, from the value `in` of slot `from`.
  /// @param row_sizes shape of a row of the program, whose sizes the part may read @param values as in run()
  [[nodiscard]] static at::Tensor run_part(const exported_program& part, std::int32_t from, const at::Tensor& in,
                                           at::IntArrayRef row_sizes, std::span<const at::Tensor> values,
                                           const module_mode& mode);

private:
  std::shared_ptr<const exported_program> program_{};
  bool has_training_mode_ = false;
};

} // namespace mneme
