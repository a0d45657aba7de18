#include "runtime/portable/matrix_products.hpp"
#include "runtime/kernels/products.hpp"
#include "runtime/kernels/transpose.hpp"
#include "runtime/portable/target.hpp"
#include <ATen/ATen.h>
#include <cmath>
#include <immintrin.h>
#include <stdexcept>
namespace mneme::portable {
namespace {

/// Arguments of c = beta * c + alpha * a b in float64; rows of all matrices are contiguous.
struct double_product {
  const double *a, *b;
  double* c;
  std::int64_t m, n, k, a_row, b_row, c_row;
  double alpha, beta;
};

constexpr int lanes = 4, tile_rows = 4, tile_vectors = 2;

/// Computes `Rows` rows of c from i and eight columns from j.
template <int Rows>
MNEME_PORTABLE void tile(const double_product& in, std::int64_t i, std::int64_t j) {
  __m256d sums[Rows][tile_vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < tile_vectors; ++v)
      sums[r][v] = _mm256_setzero_pd();
  const double* b = in.b + j;
  for (std::int64_t p = 0; p < in.k; ++p, b += in.b_row) {
    const __m256d left = _mm256_loadu_pd(b), right = _mm256_loadu_pd(b + lanes);
    for (int r = 0; r < Rows; ++r) {
      const __m256d factor = _mm256_set1_pd(in.a[(i + r) * in.a_row + p]);
      sums[r][0] = _mm256_fmadd_pd(factor, left, sums[r][0]);
      sums[r][1] = _mm256_fmadd_pd(factor, right, sums[r][1]);
    }
  }
  const __m256d alpha = _mm256_set1_pd(in.alpha), beta = _mm256_set1_pd(in.beta);
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < tile_vectors; ++v) {
      double* const c = in.c + (i + r) * in.c_row + j + v * lanes;
      const __m256d scaled = _mm256_mul_pd(alpha, sums[r][v]);
      _mm256_storeu_pd(c, in.beta == 0.0 ? scaled : _mm256_fmadd_pd(beta, _mm256_loadu_pd(c), scaled));
    }
}

/// Computes the columns from j on, which do not fill a tile, with the same operations on single numbers.
MNEME_PORTABLE void narrow_columns(const double_product& in, std::int64_t j) {
  for (std::int64_t i = 0; i < in.m; ++i)
    for (auto column = j; column < in.n; ++column) {
      double sum = 0.0;
      for (std::int64_t p = 0; p < in.k; ++p)
        sum = __builtin_fma(in.a[i * in.a_row + p], in.b[p * in.b_row + column], sum);
      double& c = in.c[i * in.c_row + column];
      const double scaled = in.alpha * sum; // a separate variable, so that it is rounded as in a vector
      c = in.beta == 0.0 ? scaled : __builtin_fma(in.beta, c, scaled);
    }
}

void multiply_doubles(const double_product& in) {
  std::int64_t j = 0;
  for (; j + lanes * tile_vectors <= in.n; j += lanes * tile_vectors) {
    std::int64_t i = 0;
    for (; i + tile_rows <= in.m; i += tile_rows)
      tile<tile_rows>(in, i, j);
    for (; i < in.m; ++i)
      tile<1>(in, i, j);
  }
  narrow_columns(in, j);
}

/// Returns `given`, or a copy of it, with contiguous rows.
at::Tensor with_rows(const at::Tensor& given) {
  if (given.stride(1) == 1 || given.size(1) <= 1)
    return given;
  if (given.scalar_type() != at::kFloat || given.stride(0) != 1 || given.stride(1) != given.size(0))
    return given.contiguous();
  auto turned = at::empty(given.sizes(), given.options());
  kernels::transpose(given.const_data_ptr<float>(), given.size(1), given.size(0), turned.mutable_data_ptr<float>());
  return turned;
}
std::int64_t row_of(const at::Tensor& given) { return given.size(0) > 1 ? given.stride(0) : given.size(1); }

void multiply_floats(const at::Tensor& a, const at::Tensor& b, at::Tensor& c, double alpha, double beta) {
  if (beta != 0.0 && beta != 1.0)
    c.mul_(beta);
  kernels::multiply({.a = a.const_data_ptr<float>(),
                     .a_row = a.stride(0),
                     .a_step = a.stride(1),
                     .b = b.const_data_ptr<float>(),
                     .b_row = row_of(b),
                     .before = beta == 0.0 ? nullptr : c.const_data_ptr<float>(),
                     .c = c.mutable_data_ptr<float>(),
                     .c_row = row_of(c),
                     .m = c.size(0),
                     .n = c.size(1),
                     .k = a.size(1),
                     .scale = static_cast<float>(alpha)});
}

/// Integer products have no rounding errors, and are too rare to need a fast kernel.
void multiply_whole(const at::Tensor& a, const at::Tensor& b, at::Tensor& c, double alpha, double beta) {
  const auto sums = (a.to(at::kLong).unsqueeze(2) * b.to(at::kLong).unsqueeze(0)).sum(1);
  const auto scaled = sums * static_cast<std::int64_t>(alpha);
  c.copy_(beta == 0.0 ? scaled : c.to(at::kLong) * static_cast<std::int64_t>(beta) + scaled);
}

} // namespace

void multiply_matrices(const at::Tensor& a, const at::Tensor& b, at::Tensor c, double alpha, double beta) {
  if (c.numel() == 0)
    return;
  if (at::isIntegralType(c.scalar_type(), /*includeBool=*/true))
    return multiply_whole(a, b, c, alpha, beta);
  if (c.scalar_type() != at::kFloat && c.scalar_type() != at::kDouble)
    throw std::runtime_error(std::string("products of ") + c10::toString(c.scalar_type()) +
                             " are not portable; use worker.arithmetic = \"machine\"");
  auto result =
      (c.stride(1) == 1 || c.size(1) == 1) && (c.size(0) == 1 || c.stride(0) >= c.size(1)) ? c : c.contiguous();
  const auto right = with_rows(b);
  if (a.size(1) == 0) {
    beta == 0.0 ? result.zero_() : result.mul_(beta);
  } else if (c.scalar_type() == at::kFloat) {
    multiply_floats(a, right, result, alpha, beta);
  } else {
    const auto left = with_rows(a);
    multiply_doubles({.a = left.const_data_ptr<double>(),
                      .b = right.const_data_ptr<double>(),
                      .c = result.mutable_data_ptr<double>(),
                      .m = c.size(0),
                      .n = c.size(1),
                      .k = a.size(1),
                      .a_row = row_of(left),
                      .b_row = row_of(right),
                      .c_row = row_of(result),
                      .alpha = alpha,
                      .beta = beta});
  }
  if (!result.is_same(c))
    c.copy_(result);
}

MNEME_PORTABLE double dot_product(const double* a, const double* b, std::int64_t n) {
  __m256d sums = _mm256_setzero_pd();
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    sums = _mm256_fmadd_pd(_mm256_loadu_pd(a + i), _mm256_loadu_pd(b + i), sums);
  alignas(32) double parts[lanes];
  _mm256_store_pd(parts, sums);
  for (int lane = 0; i < n; ++i, ++lane)
    parts[lane] = __builtin_fma(a[i], b[i], parts[lane]);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

} // namespace mneme::portable
