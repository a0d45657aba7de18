#include "runtime/training/folding_calls.hpp"
#include "runtime/base/check.hpp"
namespace mneme {
namespace {

/// True if both can be accessed as aligned vectors of four values.
/// @pre both are contiguous, of one size, on one device
bool has_quads(const at::Tensor& sum, const at::Tensor& floats) {
  MNEME_CHECK(sum.is_contiguous() && floats.is_contiguous() && sum.numel() == floats.numel() &&
                  sum.device() == floats.device(),
              sum.sizes(), floats.sizes());
  using namespace kernels::cuda;
  return is_aligned(sum.const_data_ptr(), sizeof(two_doubles)) &&
         is_aligned(floats.const_data_ptr(), sizeof(four_floats));
}

} // namespace

kernels::cuda::folded_uploads fold_call(at::Tensor& sum, std::span<const weighted_upload> uploads) {
  MNEME_CHECK(uploads.size() <= kernels::cuda::uploads_max, uploads.size());
  kernels::cuda::folded_uploads call{.sum = sum.mutable_data_ptr<double>(), .size = sum.numel(), .quads = true};
  for (const auto& upload : uploads) {
    call.quads = has_quads(sum, upload.values) && call.quads;
    call.upload[call.count] = upload.values.const_data_ptr<float>();
    call.weight[call.count++] = upload.weight;
  }
  return call;
}

kernels::cuda::folded_mean mean_call(at::Tensor& sum, at::Tensor& mean, double weight) {
  return {.sum = sum.mutable_data_ptr<double>(),
          .mean = mean.mutable_data_ptr<float>(),
          .size = sum.numel(),
          .weight = weight,
          .quads = has_quads(sum, mean)};
}

} // namespace mneme
