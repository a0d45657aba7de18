/// products: products of small matrices on a CPU. The bits of an element depend on its operands only, not on its
/// position in the matrix or on the number of models that are multiplied.
#pragma once
#include <cstdint>
namespace mneme::kernels {

// All matrices are row-major float32. A member whose name ends in "row" is a row stride in floats.

/// c[i, :] = before[i, :] + scale * sum over p of a(i, p) * b(p, :). The multiplication by `scale` is a fused
/// multiply-add if the machine has one. Rows of b are contiguous; a(i, p) is a[i * a_row + p * a_step].
struct row_product {
  const float* a = nullptr;
  std::int64_t a_row = 0, a_step = 0;
  const float* b = nullptr;
  std::int64_t b_row = 0;
  const float* before = nullptr; ///< Has the layout of c and may be c; null stands for zeros.
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t m = 0, n = 0, k = 0; ///< c is [m, n], and a sum has k terms.
  float scale = 1.0F;
};
void multiply(const row_product& product);

/// c[i, j] = bias[j] + sum over p of a[i, p] * b[j, p]. Rows of both are contiguous in p.
struct dot_product {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* b = nullptr;
  std::int64_t b_row = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t m = 0, n = 0, k = 0;
  const float* bias = nullptr; ///< [n]
};
void multiply(const dot_product& product);

} // namespace mneme::kernels
