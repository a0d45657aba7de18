/// paired_dots: dot products in AVX-512 with the summation order of AVX2 (eight lanes). Two dot products share a
/// vector.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/kernels/products.hpp"
namespace mneme::kernels {

using eight_floats = floats<8>::type;
using two_dots = floats<16>::type; ///< Eight partial sums for each of two dot products.

MNEME_INLINE void concat_lanes(two_dots& to, const eight_floats& first, const eight_floats& second) {
  to = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/// Reduces the eight lanes of each column twice by adding halves, for the column pairs (0, 1), (2, 3), ... of a row.
/// Lanes 4 g and 4 g + 1 of the result hold the two remaining lanes of column g. Lanes 4 g + 2 and 4 g + 3 hold those
/// of column 4 + g.
template <int Pairs>
MNEME_INLINE void reduce_lanes_by_4(const two_dots (&sums)[Pairs], two_dots& out) {
  two_dots four[2]; // four lanes for each column
  for (int i = 0; i < 2; ++i) {
    const two_dots &a = sums[i * (Pairs - 2)], &b = sums[i * (Pairs - 2) + 1]; // with two pairs, both are the same pair
    four[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
              __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
  out = __builtin_shufflevector(four[0], four[1], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
        __builtin_shufflevector(four[0], four[1], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}

/// Reduces the last two lanes of each column: the eight sums of `row`, then those of `next`.
MNEME_INLINE void reduce_last_lanes(const two_dots& row, const two_dots& next, two_dots& out) {
  const two_dots sums = __builtin_shufflevector(row, next, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
                        __builtin_shufflevector(row, next, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
  out = __builtin_shufflevector(sums, sums, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
}

/// Computes `Rows` rows from i and 2 * Pairs columns from j; beyond the end of the matrix its last column is repeated.
template <int Rows, int Pairs, class Tail>
MNEME_INLINE void paired_tile(const dot_product& product, const Tail& tail, std::int64_t i, std::int64_t j) {
  constexpr int columns = 2 * Pairs;
  const std::int64_t there = product.n - j < columns ? product.n - j : columns;
  const float *a[Rows], *b[columns];
  for (int r = 0; r < Rows; ++r)
    a[r] = product.a + (i + r) * product.a_row;
  for (int c = 0; c < columns; ++c)
    b[c] = product.b + (j + (c < there ? c : there - 1)) * product.b_row;
  two_dots sums[Rows][Pairs] = {}, left, right[Pairs];
  eight_floats first, second;
  std::int64_t p = 0;
  for (; p + 8 <= product.k; p += 8) {
    for (int c = 0; c < Pairs; ++c) {
      load(first, b[2 * c] + p), load(second, b[2 * c + 1] + p);
      concat_lanes(right[c], first, second);
    }
    for (int r = 0; r < Rows; ++r) {
      load(first, a[r] + p);
      concat_lanes(left, first, first);
      for (int c = 0; c < Pairs; ++c)
        sums[r][c] += left * right[c];
    }
  }
  if (p < product.k) {
    for (int c = 0; c < Pairs; ++c) {
      tail.read(first, b[2 * c]), tail.read(second, b[2 * c + 1]);
      concat_lanes(right[c], first, second);
    }
    for (int r = 0; r < Rows; ++r) {
      tail.read(first, a[r]);
      concat_lanes(left, first, first);
      for (int c = 0; c < Pairs; ++c)
        sums[r][c] += left * right[c];
    }
  }
  eight_floats bias{};
  for (std::int64_t c = 0; c < there; ++c)
    bias[c] = product.bias[j + c];
  two_dots halves[Rows], values, biases;
  concat_lanes(biases, bias, bias);
  for (int r = 0; r < Rows; ++r)
    reduce_lanes_by_4(sums[r], halves[r]);
  for (int r = 0; r < Rows; r += 2) {
    reduce_last_lanes(halves[r], halves[r + 1 < Rows ? r + 1 : r], values);
    values += biases;
    float rows[16];
    store(rows, values);
    for (int next = 0; next < 2 && r + next < Rows; ++next) {
      float* const to = product.c + (i + r + next) * product.c_row + j;
      for (std::int64_t c = 0; c < there; ++c)
        to[c] = rows[8 * next + c];
    }
  }
}

/// Computes the rows from i on in tiles of `Rows`, and the remainder in smaller tiles. Each has 2 * Pairs columns from
/// j on.
template <int Rows, int Pairs, class Tail>
MNEME_INLINE void paired_rows(const dot_product& product, const Tail& tail, std::int64_t i, std::int64_t j) {
  for (; i + Rows <= product.m; i += Rows)
    paired_tile<Rows, Pairs>(product, tail, i, j);
  if constexpr (Rows > 1 && Rows < 5)
    if (i < product.m)
      paired_rows<Rows / 2, Pairs>(product, tail, i, j);
}

/// Computes all of c; sums have at least eight terms. `tail` reads the last terms of a row, which do not fill a group
/// of eight.
template <class Tail>
MNEME_INLINE void paired_dots(const dot_product& product, const Tail& tail) {
  for (std::int64_t j = 0; j < product.n; j += 8)
    if (product.n - j <= 4)
      paired_rows<4, 2>(product, tail, 0, j);
    else if (product.m % 5 == 0)
      paired_rows<5, 4>(product, tail, 0, j);
    else
      paired_rows<4, 4>(product, tail, 0, j);
}

} // namespace mneme::kernels
