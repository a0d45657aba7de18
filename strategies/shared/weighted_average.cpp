#include "strategies/shared/weighted_average.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/fold.hpp"
#include <ATen/ops/zeros_like.h>
#include <utility>
namespace mneme {

void weighted_average::add(const at::Tensor& value, double weight) {
  check_upload(value, weight, sum_);
  if (!sum_.defined())
    sum_ = at::zeros_like(value, value.options().dtype(at::kDouble));
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
  const bool holds =
      sum.defined() ? weight_ > 0.0 && sum.scalar_type() == at::kDouble && sum.dim() == 1 : weight_ == 0.0;
  if (state.loading() && !holds)
    throw archive_error("has a mean of no uploads, or uploads without a mean");
  sum_ = sum;
}

} // namespace mneme
