#include "strategies/shared/weighted_average.hpp"
#include "runtime/check.hpp"
#include "runtime/kernels/fold.hpp"
#include <ATen/ops/zeros_like.h>
#include <array>
namespace mneme {

void weighted_average::add(const at::Tensor& value, double weight) {
  MNEME_CHECK(weight > 0.0, weight);
  MNEME_CHECK(value.scalar_type() == at::kFloat && value.is_contiguous(), value.scalar_type(), value.sizes());
  if (!sum_.defined())
    sum_ = at::zeros_like(value, value.options().dtype(at::kDouble));
  MNEME_CHECK(value.numel() == sum_.numel(), value.numel(), sum_.numel());
  waiting_.push_back({.value = value, .weight = weight});
  weight_ += weight;
  if (waiting_.size() == kernels::folded_at_once_max)
    fold_waiting();
}

void weighted_average::fold_waiting() {
  std::array<kernels::weighted_upload, kernels::folded_at_once_max> uploads;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const auto& [value, weight] = waiting_[i];
    if (value.is_cpu())
      uploads[i] = {.values = value.const_data_ptr<float>(), .weight = weight};
    else
      sum_.add_(value, weight);
  }
  if (sum_.is_cpu())
    kernels::fold(sum_.mutable_data_ptr<double>(), std::span(uploads).first(waiting_.size()), sum_.numel());
  waiting_.clear();
}

at::Tensor weighted_average::take() {
  MNEME_CHECK(!empty());
  fold_waiting();
  auto mean = sum_.div_(weight_).to(at::kFloat);
  sum_.zero_();
  weight_ = 0.0;
  return mean;
}

} // namespace mneme
