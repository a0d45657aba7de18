/// training_observer: what a method records of one client's training, step by step.
#pragma once
#include "runtime/base/tensor_map.hpp"
#include <functional>
#include <memory>
#include <string>
namespace mneme {

// Axes: B rows of a step, padding included; C classes of the loss, D features, P weights of the model.

/// One step of one client. Tensors are on the device of the training and are read during the call only.
struct observed_step {
  std::int64_t epoch = 0;
  at::Tensor logits{};   ///< [B, C]; undefined where the loss covers no class
  at::Tensor features{}; ///< [B, D]
  at::Tensor labels{};   ///< [B] int64, from 0 within the classes of the loss; -1 where padded
  at::Tensor loss{};     ///< [] float64, without penalties
};

/// Observes the training of one client. It changes nothing, and its records do not depend on other clients.
class training_observer {
public:
  virtual ~training_observer() = default;
  virtual void observe(const observed_step& step) = 0;
  /// Called after the last step of each epoch. @param weights [P]; later epochs change them in place
  virtual void end_epoch(const at::Tensor& /*weights*/) {}
  /// train_output::observed
  [[nodiscard]] virtual tensor_map result() const = 0;
};

/// Creates an observer for each training of a job.
struct training_observation {
  std::string identity{};                                                       ///< Part of the fuse key.
  std::function<std::unique_ptr<training_observer>(const at::Tensor&)> begin{}; ///< @param start [P]
};
using observation_ref = std::shared_ptr<const training_observation>;

} // namespace mneme
