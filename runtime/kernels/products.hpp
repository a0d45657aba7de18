/// Products of small matrices on a CPU. An element's bits depend on its own operands only: not on its place in
/// the matrix, nor on how many models are multiplied one after the other.
#pragma once
#include <cstdint>
namespace mneme::kernels {

// All matrices are row-major float32; a "row" member is the distance between rows in floats.

/// c[i, :] = scale * sum over p of a(i, p) * b(p, :) + bias[i], or added to c. The rows of b lie contiguous.
/// a(i, p) is a[i * a_row + p * a_step] and b(p, 0) is b[p * b_step]; a product whose operands are not laid out
/// evenly (a convolution) lists the offsets of its p instead.
struct row_product {
  const float* a = nullptr;
  std::int64_t a_row = 0, a_step = 0;
  const float* b = nullptr;
  std::int64_t b_step = 0;
  const std::int32_t* a_at = nullptr; ///< [k] instead of p * a_step; both or none are given.
  const std::int32_t* b_at = nullptr; ///< [k] instead of p * b_step
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t m = 0, n = 0, k = 0; ///< c is [m, n], sums have k terms.
  float scale = 1.0F;
  bool add = false;
  const float* bias = nullptr; ///< [m], or null
};
void multiply(const row_product& what);

/// c[i, j] = scale * sum over p of a[i, p] * b[j, p] + bias[j], or added to c. Rows of both lie contiguous in p.
struct dot_product {
  const float* a = nullptr;
  std::int64_t a_row = 0;
  const float* b = nullptr;
  std::int64_t b_row = 0;
  const std::int32_t* b_at = nullptr; ///< [n] instead of j * b_row, or null
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t m = 0, n = 0, k = 0;
  float scale = 1.0F;
  bool add = false;
  const float* bias = nullptr; ///< [n], or null
};
void multiply(const dot_product& what);

} // namespace mneme::kernels
