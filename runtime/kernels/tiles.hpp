/// tiles: sums of products that stay in registers, the inner loop of Winograd's convolutions.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
namespace mneme::kernels {

/// Adds the products of one tile to `sums`: Rows rows and Vectors vectors of columns of panel [terms, Vectors * Lanes].
/// a is [Rows, terms], or [terms, Rows] if `Across`, with a row stride of `Stride` floats.
template <int Lanes, int Vectors, int Rows, bool Across, std::int64_t Stride>
MNEME_INLINE void sum_tile(const float* a, const float* panel, std::int64_t terms,
                           typename floats<Lanes>::type (&sums)[Rows][Vectors]) {
  for (std::int64_t p = 0; p < terms; ++p) {
    typename floats<Lanes>::type column[Vectors];
    for (int v = 0; v < Vectors; ++v)
      load(column[v], panel + (p * Vectors + v) * Lanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = Across ? a[p * Stride + r] : a[r * Stride + p];
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += factor * column[v];
    }
  }
}

/// Computes a tile of c, which has a row stride of `c_row` floats: scale * sums, added to c if `Add`.
template <int Lanes, int Vectors, int Rows, bool Across, std::int64_t Stride, bool Add>
MNEME_INLINE void whole_tile(const float* a, const float* panel, std::int64_t terms, float* c, std::int64_t c_row,
                             float scale = 1.0F) {
  typename floats<Lanes>::type sums[Rows][Vectors] = {}, before;
  sum_tile<Lanes, Vectors, Rows, Across, Stride>(a, panel, terms, sums);
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      float* const to = c + r * c_row + v * Lanes;
      sums[r][v] *= scale;
      if constexpr (Add) {
        load(before, to);
        sums[r][v] += before;
      }
      store(to, sums[r][v]);
    }
}

/// Rows of the largest tile, such that its sums, two vectors of a panel and a factor fit into the registers.
template <class Set>
constexpr int tile_rows = Set::accumulators == 16 ? 12
                          : Set::lanes == 8       ? 6
                                                  : 4;
/// Rows of the next smaller tile, for the remaining rows.
constexpr int fewer_rows(int rows) { return rows == 12 || rows == 6 ? rows / 3 : rows / 2; }

} // namespace mneme::kernels
