/// cross_entropy_rows: softmax cross-entropy and its gradient on a device, one thread per row.
#pragma once
#include "runtime/kernels/cuda/thread_index.hpp"
#include <cmath>
namespace mneme::kernels::cuda {

// Shapes: R rows of all models of a step, C classes.

/// Arguments of kernels::cross_entropy_of_rows() for all models of a group; the caller sums up the losses of the rows.
struct cross_entropy_group {
  const float* logits = nullptr;        ///< [R, C]
  const std::int64_t* labels = nullptr; ///< [R]; read only for rows whose weight is not 0
  const float* weight = nullptr;        ///< [R]
  float* d_logits = nullptr;            ///< [R, C]
  double* losses = nullptr;             ///< [R] weight * loss
  std::int64_t rows = 0, classes = 0;
  double smoothing = 0.0; ///< As in kernels::cross_entropy_rows.
};

/// Adds the label-smoothing term to a row's gradient and to weight * loss.
MNEME_HOST_DEVICE inline double add_label_smoothing(const float* logits, std::int64_t label, double weight,
                                                    std::int64_t classes, float* d) {
  double sum = 0.0;
  for (std::int64_t c = 0; c < classes; ++c) {
    sum += logits[c];
    d[c] -= static_cast<float>(weight / static_cast<double>(classes));
  }
  d[label] += static_cast<float>(weight);
  return weight * (logits[label] - sum / static_cast<double>(classes));
}

/// Writes the gradient of one row to `d`; returns weight * loss. @pre weight is not 0
MNEME_HOST_DEVICE inline double cross_entropy_row(const float* logits, std::int64_t label, float weight,
                                                  std::int64_t classes, float* d) {
  float top = logits[0];
  for (std::int64_t c = 1; c < classes; ++c)
    top = logits[c] > top ? logits[c] : top;
  float sum = 0.0F;
  for (std::int64_t c = 0; c < classes; ++c) {
    const float power = std::exp(logits[c] - top);
    d[c] = power;
    sum += power;
  }
  const float factor = weight / sum;
  for (std::int64_t c = 0; c < classes; ++c)
    d[c] = d[c] * factor - (c == label ? weight : 0.0F);
  const auto below_top = static_cast<double>(logits[label] - top);
  return static_cast<double>(weight) * (std::log(static_cast<double>(sum)) - below_top);
}

MNEME_HOST_DEVICE inline void run_thread(const cross_entropy_group& on, thread_index at) {
  for (std::int64_t row = at.x.first; row < on.rows; row += at.x.step) {
    float* const d = on.d_logits + row * on.classes;
    const float weight = on.weight[row];
    if (weight != 0.0F) {
      on.losses[row] = cross_entropy_row(on.logits + row * on.classes, on.labels[row], weight, on.classes, d);
      if (on.smoothing != 0.0)
        on.losses[row] +=
            add_label_smoothing(on.logits + row * on.classes, on.labels[row], weight * on.smoothing, on.classes, d);
      continue;
    }
    on.losses[row] = 0.0; // a padded row has no gradient, whatever its logits are
    for (std::int64_t c = 0; c < on.classes; ++c)
      d[c] = 0.0F;
  }
}

inline grid_shape grid_of(const cross_entropy_group& on) { return grid_for(on.rows); }

} // namespace mneme::kernels::cuda
