/// dense_chain: training steps of one model at a time, for nets of fully connected layers only.
#pragma once
#include "runtime/models/dense.hpp"
#include <vector>
namespace mneme {

/// Plain SGD on the cross-entropy, on a CPU. A step gives the same bits as model::forward(), cross_entropy() and
/// model::backward() in a fused group. Its working set fits into the first caches of a core.
class dense_chain {
public:
  /// @param layers all layers, in order from the input; the last one is the head
  /// @param low, high the loss covers classes low .. high - 1
  /// @param rows_max upper bound on the rows of a step
  dense_chain(const std::vector<dense_layer>& layers, std::int64_t low, std::int64_t high, std::int64_t rows_max);

  struct step {
    const float* weights = nullptr;       ///< [P] before the step
    float* moved = nullptr;               ///< [P] after the step; must be `weights` unless moves_all()
    const float* inputs = nullptr;        ///< [rows, inputs of the first layer]
    const std::int64_t* labels = nullptr; ///< [rows] labels and row weights, as in kernels::cross_entropy_rows
    const float* row_weight = nullptr;
    std::int64_t rows = 0;
    float learning_rate = 0.0F;
    double label_smoothing = 0.0; ///< As kernels::cross_entropy_rows::smoothing.
  };
  /// Runs one training step and returns its loss.
  double run_step(const step& now);
  /// True if a step writes every weight, that is, if the loss covers all classes of the head.
  [[nodiscard]] bool moves_all() const noexcept { return moves_all_; }

private:
  std::vector<dense_layer> layers_;
  std::vector<std::vector<float>> values_, gradients_; // outputs of each layer, and their gradients
  bool moves_all_;
};

} // namespace mneme
