#include "runtime/folding.hpp"
#include "runtime/check.hpp"
#include "runtime/folding_calls.hpp"
#include "runtime/kernels/cuda/on_device.hpp"
#include <ATen/ops/empty_like.h>
namespace mneme {

void fold_upload(at::Tensor& sum, const at::Tensor& upload, double weight) {
  MNEME_CHECK(sum.scalar_type() == at::kDouble && sum.sizes() == upload.sizes(), sum.sizes(), upload.sizes());
  if constexpr (kernels::cuda::linked)
    if (kernels::cuda::run_on(sum.device()) && upload.scalar_type() == at::kFloat && upload.is_contiguous())
      return kernels::cuda::start_on(sum.device(), fold_call(sum, upload, weight));
  sum.add_(upload, weight);
}

at::Tensor take_mean(at::Tensor& sum, double weight) {
  MNEME_CHECK(sum.scalar_type() == at::kDouble && weight != 0.0, sum.sizes(), weight);
  if constexpr (kernels::cuda::linked)
    if (kernels::cuda::run_on(sum.device())) {
      auto mean = at::empty_like(sum, sum.options().dtype(at::kFloat));
      kernels::cuda::start_on(sum.device(), mean_call(sum, mean, weight));
      return mean;
    }
  auto mean = sum.div_(weight).to(at::kFloat);
  sum.zero_();
  return mean;
}

} // namespace mneme
