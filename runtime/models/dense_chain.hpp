/// dense_chain: training steps of one model at a time, of a net of fully connected layers and nothing else.
#pragma once
#include "runtime/models/dense.hpp"
#include <vector>
namespace mneme {

/// Plain SGD on the cross-entropy, on a CPU. A step's bits are those of model::forward(), cross_entropy() and
/// model::backward() in a fused group; what it touches is small enough for a core's first caches.
class dense_chain {
public:
  /// `layers` from the input on, the last one the head; losses cover its rows low .. high - 1. Steps have at most
  /// `rows_max` rows.
  dense_chain(const std::vector<dense_layer>& layers, std::int64_t low, std::int64_t high, std::int64_t rows_max);

  struct step {
    const float* weights = nullptr;       ///< [P] before the step
    float* moved = nullptr;               ///< [P] after it: the same memory or, where moves_all(), elsewhere
    const float* inputs = nullptr;        ///< [rows, first layer's in]
    const std::int64_t* labels = nullptr; ///< [rows] labels and row weights: kernels::cross_entropy_rows
    const float* row_weight = nullptr;
    std::int64_t rows = 0;
    float learning_rate = 0.0F;
    double label_smoothing = 0.0; ///< kernels::cross_entropy_rows::smoothing
  };
  /// Returns the step's loss.
  double take(const step& now);
  /// True if a step writes every weight.
  [[nodiscard]] bool moves_all() const noexcept { return moves_all_; }

private:
  std::vector<dense_layer> layers_;
  std::vector<std::vector<float>> values_, gradients_; // of each layer's output
  bool moves_all_;
};

} // namespace mneme
