#include "strategies/lander/first_epoch_loss.hpp"
#include <ATen/TensorOperators.h>
namespace mneme {
namespace {

class first_epoch_observer final : public training_observer {
public:
  void observe(const observed_step& step) override {
    if (step.epoch == 0)
      sum_ = sum_.defined() ? sum_ + step.loss : step.loss.clone();
  }
  [[nodiscard]] tensor_map result() const override {
    tensor_map records;
    records.put(first_epoch_loss, sum_);
    return records;
  }

private:
  at::Tensor sum_{}; // [] float64
};

} // namespace

observation_ref first_epoch_observation() {
  static const auto only = std::make_shared<const training_observation>(
      training_observation{.identity = first_epoch_loss,
                           .begin = [](const at::Tensor&) { return std::make_unique<first_epoch_observer>(); }});
  return only;
}

} // namespace mneme
