/// Optimizers: what turns gradients into weights, for a fused group of models, in place.
#pragma once
#include "runtime/method/training.hpp"
#include "runtime/models/model.hpp"
#include <span>
namespace mneme {

// Axes: K models, P weights of a model.

/// Rows first .. first + count - 1 of a fused group.
struct model_run {
  std::int64_t first = 0, count = 0;
};

/// Memory of optimizers that one thread uses one after the other, so that its pages are not asked for anew.
struct moment_buffers {
  at::Tensor first{}, second{};
};

/// The state of K optimizers, made afresh for each local training. Touches trained segments only.
class optimizer {
public:
  /// @param weights [K, P], changed in place; @param gradients [K, P]; clipping may change them
  /// @param memory outlives the optimizer; null: it has its own
  optimizer(const training_options& options, std::vector<segment> trained, at::Tensor weights, at::Tensor gradients,
            moment_buffers* memory = nullptr);

  /// True if plain gradients, scaled by -learning_rate and added to the weights, are the whole step: then no gradient
  /// need be stored.
  [[nodiscard]] static bool is_plain_sgd(const training_options& options) {
    return options.optimizer == optimizer_kind::sgd && options.momentum == 0.0 && options.weight_decay == 0.0 &&
           options.clip_norm == 0.0;
  }
  /// How many buffers of [P] a model needs besides its weights.
  [[nodiscard]] static std::int64_t buffers(const training_options& options);

  /// Clips and takes one step. @param step_of how many steps each model of the run has taken,
  /// this one included: [run.count]. Waits for nothing on a device.
  void step(model_run run, std::span<const std::int64_t> step_of);

private:
  [[nodiscard]] float clip_factor(std::int64_t k) const;
  void step_alone(std::int64_t k, std::int64_t taken);
  void step_on_device(model_run run, std::span<const std::int64_t> step_of);
  void clip_on_device(model_run run);

  training_options options_;
  std::vector<segment> trained_;
  at::Tensor weights_, gradients_;
  at::Tensor first_, second_; // [K, P]: momentum; moments of Adam
  std::vector<bool> begun_;   // [K] on a CPU: true once a model's moments hold values
};

} // namespace mneme
