#include "strategies/shared/weighted_average.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/fold.hpp"
#include <ATen/ops/zeros_like.h>
#include <utility>
namespace mneme {

void weighted_average::add(const at::Tensor& value, double weight) {
  MNEME_CHECK(weight > 0.0, weight);
  MNEME_CHECK(value.scalar_type() == at::kFloat && value.is_contiguous(), value.scalar_type(), value.sizes());
  if (!sum_.defined())
    sum_ = at::zeros_like(value, value.options().dtype(at::kDouble));
  MNEME_CHECK(value.numel() == sum_.numel(), value.numel(), sum_.numel());
  if (value.device() != sum_.device()) // it comes from a checkpoint
    sum_ = sum_.to(value.device());
  waiting_.push_back({.values = value, .weight = weight});
  weight_ += weight;
  if (waiting_.size() == kernels::folded_at_once_max)
    fold_waiting();
}

void weighted_average::fold_waiting() {
  if (!waiting_.empty())
    fold_uploads(sum_, waiting_);
  waiting_.clear();
}

at::Tensor weighted_average::take() {
  MNEME_CHECK(!empty());
  fold_waiting();
  return take_mean(sum_, std::exchange(weight_, 0.0));
}

void weighted_average::persist(archive& state) {
  fold_waiting();
  auto sum = empty() ? at::Tensor() : sum_; // else zeros
  state(sum)(weight_);
  sum_ = sum;
}

} // namespace mneme
