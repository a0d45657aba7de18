/// tiles: sums of products that stay in registers, the inner loop of Winograd's convolutions.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
namespace mneme::kernels {

/// The sums of one tile: Rows rows, Vectors vectors of columns. Terms of packed A lie side by side in its rows, or,
/// `Across`, below each other; `Stride` floats lie between its rows.
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

/// A tile whose columns all exist, `c_row` floats between its rows: scale * sums, or these added to what is there.
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

/// Rows of the largest tile: all registers but those of two columns and a factor.
template <class Set>
constexpr int tile_rows = Set::accumulators == 16 ? 12
                          : Set::lanes == 8       ? 6
                                                  : 4;
/// Rows of the tile for what a larger one leaves over.
constexpr int fewer_rows(int rows) { return rows == 12 || rows == 6 ? rows / 3 : rows / 2; }

} // namespace mneme::kernels
