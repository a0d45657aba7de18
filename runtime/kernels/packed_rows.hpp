/// packed_rows: products with large matrices b, which are copied panel by panel into the L1 cache.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/kernels/products.hpp"
namespace mneme::kernels {

// Rows of b that are a page apart evict each other from the L1 cache. Therefore a panel of columns is copied with as
// many terms as fit, and partial sums stay in memory until the next panel. The bits equal those of a tile that reads
// all terms in one pass.

inline constexpr std::int64_t first_cache_floats = 8192; // size of an L1 cache of 32 KiB
/// Number of columns of a panel.
template <class Set>
inline constexpr std::int64_t panel_columns = Set::lanes*(Set::accumulators == 16 ? 4 : 2);

/// Rows from .. from + terms - 1 of a panel's columns of b, copied to contiguous memory.
struct packed_panel {
  const float* values = nullptr;
  std::int64_t from = 0, terms = 0;
  bool first = false, last = false; ///< true: contains the first, or the last, terms of the sums.
};

/// Computes `Rows` rows of c for the panel's columns, from offset `at` on. `waiting` holds sums between panels.
template <class Set, int Rows, bool Adds>
MNEME_INLINE void packed_tile(const row_product& product, const packed_panel& panel, const float* a, float* waiting,
                              std::int64_t at) {
  constexpr int lanes = Set::lanes, vectors = panel_columns<Set> / lanes, width = lanes * vectors;
  using vec = typename floats<lanes>::type;
  vec sums[Rows][vectors] = {};
  if (!panel.first)
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < vectors; ++v)
        load(sums[r][v], waiting + r * width + v * lanes);
  const std::int64_t a_row = product.a_row, a_step = product.a_step, c_row = product.c_row;
  const float* b = panel.values;
  for (std::int64_t p = 0; p < panel.terms; ++p, a += a_step, b += width) {
    vec column[vectors];
    for (int v = 0; v < vectors; ++v)
      load(column[v], b + v * lanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = a[r * a_row];
      for (int v = 0; v < vectors; ++v)
        sums[r][v] += factor * column[v];
    }
  }
  if (!panel.last) {
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < vectors; ++v)
        store(waiting + r * width + v * lanes, sums[r][v]);
    return;
  }
  const float scale = product.scale;
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const std::int64_t place = at + r * c_row + v * lanes;
      if constexpr (Adds) {
        vec there;
        load(there, product.before + place);
        store(product.c + place, vec(scale * sums[r][v] + there));
      } else {
        store(product.c + place, vec(scale * sums[r][v]));
      }
    }
}

/// Computes `rows` rows of c from offset `at` in tiles of `Rows`, and the rest in smaller tiles. `a` is the first row.
template <class Set, int Rows, bool Adds>
MNEME_INLINE void packed_bands(const row_product& product, const packed_panel& panel, const float* a, float* waiting,
                               std::int64_t rows, std::int64_t at) {
  for (; rows >= Rows; rows -= Rows) {
    packed_tile<Set, Rows, Adds>(product, panel, a, waiting, at);
    a += Rows * product.a_row;
    waiting += Rows * panel_columns<Set>;
    at += Rows * product.c_row;
  }
  if constexpr (Rows > 1)
    if (rows > 0)
      packed_bands<Set, Rows == 6 ? 4 : Rows / 2, Adds>(product, panel, a, waiting, rows, at);
}

/// Copies rows from .. from + terms - 1 of b into `panel`, for the columns from j on.
template <class Set>
MNEME_INLINE void pack_columns(const row_product& product, std::int64_t from, std::int64_t terms, std::int64_t j,
                               float* panel) {
  constexpr std::int64_t width = panel_columns<Set>;
  for (std::int64_t p = 0; p < terms; ++p)
    for (std::int64_t v = 0; v < width; v += Set::lanes) {
      typename floats<Set::lanes>::type values;
      load(values, product.b + (from + p) * product.b_row + j + v);
      store(panel + p * width + v, values);
    }
}

/// Computes the columns of c that fill whole panels.
template <class Set, bool Adds>
MNEME_INLINE void multiply_packed(const row_product& whole) {
  constexpr std::int64_t width = panel_columns<Set>, terms_max = first_cache_floats / width;
  constexpr std::int64_t block_rows = 96; // number of rows of c that use a panel before the next one is copied
  alignas(64) float panel[first_cache_floats], waiting[block_rows * width];
  for (std::int64_t i = 0; i < whole.m; i += block_rows) {
    const std::int64_t rows = whole.m - i < block_rows ? whole.m - i : block_rows;
    const float* const a = whole.a + i * whole.a_row;
    for (std::int64_t j = 0; j + width <= whole.n; j += width)
      for (std::int64_t from = 0; from < whole.k; from += terms_max) {
        const std::int64_t terms = whole.k - from < terms_max ? whole.k - from : terms_max;
        pack_columns<Set>(whole, from, terms, j, panel);
        packed_bands<Set, 6, Adds>(whole, {panel, from, terms, from == 0, from + terms == whole.k},
                                   a + from * whole.a_step, waiting, rows, i * whole.c_row + j);
      }
  }
}

/// True if there are enough rows to share a copied panel and enough terms to pay for it. Other products, such as those
/// in steps of 64 rows, are up to 1.5 times as fast without copies (README.md).
MNEME_INLINE bool pays_to_pack(const row_product& product) {
  constexpr std::int64_t rows_min = 24, terms_min = 512, columns_min = 64;
  return product.m >= rows_min && product.k >= terms_min && product.n >= columns_min &&
         product.k * product.n > first_cache_floats;
}

} // namespace mneme::kernels
