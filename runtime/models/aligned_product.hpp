/// aligned_product: LibTorch's matrix product on a CPU, with bits that do not depend on the alignment of operands.
#pragma once
#include "runtime/kernels/scratch.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

/// result = beta * added + alpha * a b, computed by at::addmm. On some processors the bits of MKL's products depend on
/// the operands' offsets within a cache line. On an AMD EPYC 231 of 1,536 small products differed, and on an Intel Xeon
/// with MKL_ENABLE_INSTRUCTIONS=SSE4_2 157 of 1,248. In a fused batch, a model's matrices may lie at any offset.
/// Operands that do not begin at a cache line are therefore copied. If all widths are multiples of 16, no copy is
/// needed.
/// @param result [m, n], contiguous; must not be `a` or `b`
/// @param added [m, n] or [n]; may be `result`; not read if beta is 0
/// @param a [m, k] @param b [k, n], each contiguous or the transpose of a contiguous matrix
/// @param memory working memory of the pass; its first three slots are overwritten
void aligned_product(at::Tensor result, const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, double beta,
                     double alpha, kernels::scratch& memory);

/// Returns `values` itself if it begins at a cache line, otherwise a copy in `slot` of `memory`.
/// @pre `values` is dense and does not overlap itself
[[nodiscard]] at::Tensor at_line(const at::Tensor& values, std::size_t slot, kernels::scratch& memory);

} // namespace mneme
