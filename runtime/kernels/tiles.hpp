/// tiles: sums of products that stay in registers, the inner loop of all convolutions.
#pragma once
#include "runtime/kernels/simd.hpp"
namespace mneme::kernels {

/// Columns j .. j + width - 1 of b [terms, n], zeros beyond n, to panel [terms, width].
template <int Width>
MNEME_INLINE void pack_panel(const float* b, std::int64_t terms, std::int64_t n, std::int64_t j, float* panel) {
  const std::int64_t columns = n - j < Width ? n - j : Width;
  for (std::int64_t p = 0; p < terms; ++p, panel += Width) {
    if (columns == Width) {
      for (int i = 0; i < Width; ++i)
        panel[i] = b[p * n + j + i];
      continue;
    }
    for (std::int64_t i = 0; i < Width; ++i)
      panel[i] = i < columns ? b[p * n + j + i] : 0.0F;
  }
}

/// What a tile does with its sums.
struct tile_end {
  std::int64_t columns = 0; // of the panel that exist
  float scale = 1.0F;
  bool add = false;            // to what is in C
  const float* bias = nullptr; // [columns]
  bool relu = false;
};

/// One tile of C: Rows rows, Vectors vectors of columns. Terms of packed A lie side by side in its rows, or,
/// `Across`, below each other; `Stride` floats lie between its rows.
template <int Lanes, int Vectors, int Rows, bool Across, std::int64_t Stride>
MNEME_INLINE void tile(const float* a, const float* panel, std::int64_t terms, float* const* c, const tile_end& end) {
  using vec = typename floats<Lanes>::type;
  vec sums[Rows][Vectors] = {};
  for (std::int64_t p = 0; p < terms; ++p) {
    vec column[Vectors];
    for (int v = 0; v < Vectors; ++v)
      load(column[v], panel + (p * Vectors + v) * Lanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = Across ? a[p * Stride + r] : a[r * Stride + p];
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += factor * column[v];
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      const std::int64_t columns = end.columns - v * Lanes < Lanes ? end.columns - v * Lanes : Lanes;
      float* const to = c[r] + v * Lanes;
      vec value = end.scale * sums[r][v], other = {};
      const auto read = [&](const float* from) __attribute__((always_inline)) {
        if (columns == Lanes)
          load(other, from);
        else
          for (std::int64_t i = 0; i < columns; ++i)
            other[i] = from[i];
      };
      if (end.bias) {
        read(end.bias + v * Lanes);
        value += other;
      }
      if (end.add) {
        read(to);
        value += other;
      }
      if (end.relu)
        value = value <= 0.0F ? vec{} : value; // NaN stays
      if (columns == Lanes)
        store(to, value);
      else
        for (std::int64_t i = 0; i < columns; ++i)
          to[i] = value[i];
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
