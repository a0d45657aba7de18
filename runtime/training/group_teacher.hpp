/// group_teacher: one frozen teacher per client of a group, and the teachers' outputs for the rows of a step.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/training/frozen_outputs.hpp"
#include "runtime/training/optimizers.hpp"
#include <span>
#include <string>
#include <utility>
#include <vector>
namespace mneme {

// Axes: K clients of a run, P weights of a model, B rows of a step, D features.

/// Teachers of one kind of net, in the order of the group's clients. They always run in evaluation mode.
class group_teacher {
public:
  group_teacher(teacher_view view, std::vector<std::string> maps, std::size_t clients)
      : view_(view), maps_(std::move(maps)), weights_(clients) {}

  /// Sets the weights of client k's teacher. @param weights [P] on the device
  void set_weights(std::size_t k, at::Tensor weights) { weights_[k] = std::move(weights); }
  /// Weights of client k's teacher; undefined: the client has none.
  [[nodiscard]] const at::Tensor& weights(std::size_t k) const { return weights_[k]; }
  /// Stores the outputs of client k's teacher for all rows of the client.
  void keep_rows(std::size_t k, teacher_rows rows) {
    kept_.resize(weights_.size());
    kept_[k] = std::move(rows);
  }
  /// True if outputs are stored: stored_outputs() then replaces compute_outputs().
  [[nodiscard]] bool keeps_rows() const noexcept { return !kept_.empty(); }

  /// Computes the outputs for the step's rows: features [K, B, D] and logits [K, B, teacher classes], each if
  /// requested. Adjacent clients whose teachers have the same weights, the usual case within a round, share a pass.
  /// @param inputs [K, B, C, H, W]
  [[nodiscard]] activations compute_outputs(const model& net, model_run run, const at::Tensor& inputs,
                                            tape& memory) const;
  /// Copies the stored outputs of the step's rows. @param positions positions of each client's own rows @param rows
  /// rows per client, padding included @param feature_width D
  [[nodiscard]] activations stored_outputs(model_run run, std::span<const std::span<const std::int64_t>> positions,
                                           std::int64_t rows, std::int64_t feature_width) const;

private:
  teacher_view view_;
  std::vector<std::string> maps_;
  std::vector<at::Tensor> weights_; // one per client
  std::vector<teacher_rows> kept_;  // one per client; empty: computed in every step
};

} // namespace mneme
