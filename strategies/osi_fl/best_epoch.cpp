#include "strategies/osi_fl/best_epoch.hpp"
#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
namespace mneme {
namespace {

/// Keeps the weights of the best epoch. Compares the counts of correct rows on the device, without a transfer to the
/// host.
class best_epoch_observer final : public training_observer {
public:
  explicit best_epoch_observer(const at::Tensor& start)
      : weights_(start.clone()), correct_(at::zeros({}, start.options().dtype(at::kLong))),
        most_correct_(at::zeros_like(correct_)) {}
  void observe(const observed_step& step) override {
    correct_ = correct_ + step.logits.detach().argmax(1).eq(step.labels).sum(); // padded rows have label -1, so they
                                                                                // never count
  }
  void end_epoch(const at::Tensor& weights) override {
    weights_ = at::where(correct_.gt(most_correct_), weights, weights_);
    most_correct_ = at::maximum(most_correct_, correct_);
    correct_ = at::zeros_like(correct_);
  }
  [[nodiscard]] tensor_map result() const override {
    tensor_map records;
    records.put(best_epoch_weights, weights_);
    return records;
  }

private:
  at::Tensor weights_, correct_, most_correct_; // [P]; [] int64: correct rows of this epoch, and of the best
};

} // namespace

observation_ref best_epoch_observation() {
  static const auto only = std::make_shared<const training_observation>(
      training_observation{.identity = best_epoch_weights, .begin = [](const at::Tensor& start) {
                             return std::make_unique<best_epoch_observer>(start);
                           }});
  return only;
}

} // namespace mneme
