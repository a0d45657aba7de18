#include "runtime/kernels/fold.hpp"
#include "runtime/base/check.hpp"
#include "runtime/kernels/instruction_set.hpp"
namespace mneme::kernels {
namespace {

/// `Count` is a compile-time constant, so that a sum stays in a register from the first upload to the last.
template <std::size_t Count>
MNEME_INLINE void fold_counted(double* __restrict sum, const weighted_upload* uploads, std::int64_t n) {
  const float* __restrict values[Count];
  double weights[Count];
  for (std::size_t k = 0; k < Count; ++k) {
    values[k] = uploads[k].values;
    weights[k] = uploads[k].weight;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double total = sum[i];
    for (std::size_t k = 0; k < Count; ++k)
      total += weights[k] * static_cast<double>(values[k][i]);
    sum[i] = total;
  }
}

template <class Set>
MNEME_INLINE void fold_body(double* sum, const weighted_upload* uploads, std::size_t count, std::int64_t n) {
  switch (count) {
  case 1:
    return fold_counted<1>(sum, uploads, n);
  case 2:
    return fold_counted<2>(sum, uploads, n);
  case 3:
    return fold_counted<3>(sum, uploads, n);
  default:
    return fold_counted<4>(sum, uploads, n);
  }
}

MNEME_KERNEL(fold, (double* sum, const weighted_upload* uploads, std::size_t count, std::int64_t n),
             (sum, uploads, count, n))

} // namespace

void fold(double* sum, std::span<const weighted_upload> uploads, std::int64_t n) {
  MNEME_CHECK(uploads.size() <= folded_at_once_max, uploads.size());
  if (!uploads.empty())
    best_fold(sum, uploads.data(), uploads.size(), n);
}

} // namespace mneme::kernels
