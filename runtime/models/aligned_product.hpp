/// aligned_product: LibTorch's product of matrices on a CPU, to the same bits wherever its operands begin.
#pragma once
#include "runtime/kernels/scratch.hpp"
#include <ATen/core/Tensor.h>
namespace mneme {

/// result = beta * added + alpha * a b. On some processors bits of MKL's products depend on where operands begin within
/// a cache line (231 of 1,536 small ones on an AMD EPYC; with MKL_ENABLE_INSTRUCTIONS=SSE4_2 157 of 1,248 on an Intel
/// Xeon), and the matrices of a client begin anywhere once it shares a batch. So those that do not begin at a line are
/// copied to one; of nets whose widths are multiples of 16 there are none.
/// @param result [m, n], contiguous; never `a` or `b`
/// @param added [m, n] or [n]; may be `result`; not read where beta is 0
/// @param a [m, k] @param b [k, n], each contiguous or the transpose of what is
/// @param memory of the pass; its first three slots are written
void aligned_product(at::Tensor result, const at::Tensor& added, const at::Tensor& a, const at::Tensor& b, double beta,
                     double alpha, kernels::scratch& memory);

/// `values`, or a copy in this slot of `memory` if they do not begin at a cache line. @pre dense, without overlap
[[nodiscard]] at::Tensor at_line(const at::Tensor& values, std::size_t slot, kernels::scratch& memory);

} // namespace mneme
