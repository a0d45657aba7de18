#include "strategies/shared/weighted_average.hpp"
#include "runtime/check.hpp"
#include <ATen/ATen.h>
namespace mneme {

void weighted_average::add(const at::Tensor& value, double weight) {
  MNEME_CHECK(weight > 0.0, weight);
  if (!sum_.defined())
    sum_ = at::zeros_like(value, value.options().dtype(at::kDouble));
  sum_.add_(value, weight);
  weight_ += weight;
}

at::Tensor weighted_average::take() {
  MNEME_CHECK(!empty());
  auto mean = sum_.div_(weight_).to(at::kFloat);
  sum_.zero_();
  weight_ = 0.0;
  return mean;
}

} // namespace mneme
