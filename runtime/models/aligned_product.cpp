#include "runtime/models/aligned_product.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
namespace mneme {
namespace {

bool begins_at_line(const at::Tensor& values) {
  constexpr std::uintptr_t line_bytes = 64;
  return reinterpret_cast<std::uintptr_t>(values.const_data_ptr()) % line_bytes == 0;
}

/// Uninitialized tensor with the shape and strides of `like` in `slot` of `memory`, aligned to a cache line.
at::Tensor place_at_line(const at::Tensor& like, std::size_t slot, kernels::scratch& memory) {
  MNEME_CHECK(like.is_non_overlapping_and_dense(), like.sizes(), like.strides());
  return at::from_blob(memory.take(slot, like.numel()), like.sizes(), like.strides(), at::kFloat);
}

} // namespace

at::Tensor at_line(const at::Tensor& values, std::size_t slot, kernels::scratch& memory) {
  return begins_at_line(values) ? values : place_at_line(values, slot, memory).copy_(values);
}

void aligned_product(at::Tensor result, const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, double beta,
                     double alpha, kernels::scratch& memory) {
  const auto left = at_line(a, 0, memory), right = at_line(b, 1, memory);
  if (begins_at_line(result)) {
    at::addmm_out(result, added, left, right, beta, alpha);
    return;
  }
  auto copy = place_at_line(result, 2, memory);
  at::addmm_out(copy, added, left, right, beta, alpha);
  result.copy_(copy);
}

} // namespace mneme
