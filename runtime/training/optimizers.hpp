/// optimizers: SGD, Adam and AdamW for a fused group of models, in place.
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/models/model.hpp"
#include <span>
namespace mneme {

// Axes: K models, P weights of a model.

/// The rows `first` to `first` + `count` - 1 of a fused group.
struct model_run {
  std::int64_t first = 0, count = 0;
};

/// Memory of optimizers that is reused by the successive trainings of a thread, which avoids page faults.
struct moment_buffers {
  at::Tensor first{}, second{};
};

/// State of the optimizers of K models, created for each local training. Changes trained segments only.
class optimizer {
public:
  /// @param weights [K, P], changed in place @param gradients [K, P]; clipping changes them
  /// @param memory must outlive the optimizer; null: the optimizer allocates its own memory
  optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights, at::Tensor gradients,
            moment_buffers* memory = nullptr);

  /// True if the step only adds the gradients, times -learning_rate, to the weights. Gradients then need no memory.
  [[nodiscard]] static bool is_plain_sgd(const training_options& options) {
    return options.optimizer == optimizer_kind::sgd && options.momentum == 0.0 && options.weight_decay == 0.0 &&
           options.clip_norm == 0.0;
  }
  /// Number of buffers [P] per model in addition to its weights.
  [[nodiscard]] static std::int64_t buffers(const training_options& options);

  /// Clips and takes one step; asynchronous on a device. @param step_of [run.count] number of each model's step, from 1
  void step(model_run run, std::span<const std::int64_t> step_of);

private:
  [[nodiscard]] float clip_factor(std::int64_t k) const;
  void step_alone(std::int64_t k, std::int64_t taken);
  void step_on_device(model_run run, std::span<const std::int64_t> step_of);
  void clip_on_device(model_run run);

  training_options options_;
  std::vector<segment> trained_;
  at::Tensor weights_, gradients_;
  at::Tensor first_, second_; // [K, P]: momentum, or Adam's moments
  std::vector<bool> begun_;   // [K], used on a CPU; true: the model's moments are initialized
};

} // namespace mneme
