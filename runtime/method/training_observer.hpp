/// training_observer: lets a method record one client's training step by step.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <functional>
#include <memory>
#include <string>
namespace mneme {

// Axes: B rows of a step, padding included; C classes of the loss, D features, P weights of the model.

/// One training step of one client. Tensors are on the training device and valid during the call only.
struct observed_step {
  std::int64_t epoch = 0;
  at::Tensor logits{};   ///< [B, C]; undefined if the loss covers no class
  at::Tensor features{}; ///< [B, D]
  at::Tensor labels{};   ///< [B] int64, relative to the first class of the loss; -1 for padding
  at::Tensor loss{};     ///< [] float64, without penalties
};

/// Observes the training of one client without changing it. Its records do not depend on other clients.
class training_observer {
public:
  virtual ~training_observer() = default;
  /// Called after each step.
  virtual void observe(const observed_step& step) = 0;
  /// Called after the last step of each epoch. @param weights [P], changed in place by later epochs
  virtual void end_epoch(const at::Tensor& /*weights*/) {}
  /// The records; they become train_output::observed.
  [[nodiscard]] virtual tensor_map result() const = 0;
};

/// Creates an observer for each training of a job.
struct training_observation {
  std::string identity{};                                                       ///< Part of the fuse key.
  std::function<std::unique_ptr<training_observer>(const at::Tensor&)> begin{}; ///< @param start start weights [P]
};
using observation_ref = std::shared_ptr<const training_observation>;

} // namespace mneme
