#include "runtime/kernels/products.hpp"
#include "runtime/kernels/simd.hpp"
namespace mneme::kernels {
namespace {

struct even_steps {
  std::int64_t a_step, b_step;
  MNEME_INLINE std::int64_t a(std::int64_t p) const { return p * a_step; }
  MNEME_INLINE std::int64_t b(std::int64_t p) const { return p * b_step; }
};
struct listed_steps {
  const std::int32_t *a_at, *b_at;
  MNEME_INLINE std::int64_t a(std::int64_t p) const { return a_at[p]; }
  MNEME_INLINE std::int64_t b(std::int64_t p) const { return b_at[p]; }
};

/// One tile of c: `Rows` rows from i, `Vectors` vectors of `Lanes` columns from j.
template <int Lanes, int Rows, int Vectors, class Steps>
MNEME_INLINE void row_tile(const row_product& what, const Steps& steps, std::int64_t i, std::int64_t j) {
  using vec = typename floats<Lanes>::type;
  vec sums[Rows][Vectors] = {};
  const float* const a = what.a + i * what.a_row;
  const float* const b = what.b + j;
  for (std::int64_t p = 0; p < what.k; ++p) {
    vec column[Vectors];
    for (int v = 0; v < Vectors; ++v)
      load(column[v], b + steps.b(p) + v * Lanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = a[r * what.a_row + steps.a(p)];
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += factor * column[v];
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      float* const c = what.c + (i + r) * what.c_row + j + v * Lanes;
      vec value = what.scale * sums[r][v];
      if (what.bias)
        value += what.bias[i + r];
      if (what.add) {
        vec before;
        load(before, c);
        value += before;
      }
      store(c, value);
    }
}

template <int Lanes, int Vectors, int Rows, class Steps>
MNEME_INLINE void row_panel(const row_product& what, const Steps& steps, std::int64_t j, std::int64_t i = 0) {
  for (; i + Rows <= what.m; i += Rows)
    row_tile<Lanes, Rows, Vectors>(what, steps, i, j);
  if constexpr (Rows > 1)
    if (i < what.m)
      row_panel<Lanes, Vectors, Rows / 2>(what, steps, j, i);
}

/// Columns from j on, in panels of `Vectors` vectors; what is left over in ever narrower ones.
template <class Set, int Lanes, int Vectors, class Steps>
MNEME_INLINE void row_columns(const row_product& what, const Steps& steps, std::int64_t j) {
  constexpr int rows = Set::accumulators / Vectors < 8 ? Set::accumulators / Vectors : 8;
  for (; j + Lanes * Vectors <= what.n; j += Lanes * Vectors)
    row_panel<Lanes, Vectors, rows>(what, steps, j);
  if (j == what.n)
    return;
  if constexpr (Vectors > 1)
    row_columns<Set, Lanes, Vectors / 2>(what, steps, j);
  else if constexpr (Lanes > 1)
    row_columns<Set, Lanes / 2, 1>(what, steps, j);
}

/// The columns from j on that fill no whole panel, of `Rows` rows.
template <int Lanes, int Vectors, int Rows, class Steps>
MNEME_INLINE void row_rest(const row_product& what, const Steps& steps, std::int64_t j) {
  if constexpr (Vectors > 0) {
    if (j + Lanes * Vectors <= what.n) {
      row_tile<Lanes, Rows, Vectors>(what, steps, 0, j);
      j += Lanes * Vectors;
    }
    if (j < what.n)
      row_rest<Lanes, Vectors / 2, Rows>(what, steps, j);
  } else if constexpr (Lanes > 1) {
    row_rest<Lanes / 2, 1, Rows>(what, steps, j);
  }
}

/// All columns of `Rows` rows from i, then of the rows that are left.
template <class Set, int Vectors, int Rows, class Steps>
MNEME_INLINE void row_bands(const row_product& what, const Steps& steps, std::int64_t i = 0) {
  constexpr int lanes = Set::lanes;
  for (; i + Rows <= what.m; i += Rows) {
    row_product band = what;
    band.a += i * what.a_row;
    band.c += i * what.c_row;
    band.bias = what.bias ? what.bias + i : nullptr;
    band.m = Rows;
    std::int64_t j = 0;
    for (; j + lanes * Vectors <= what.n; j += lanes * Vectors)
      row_tile<lanes, Rows, Vectors>(band, steps, 0, j);
    row_rest<lanes, Vectors / 2, Rows>(band, steps, j);
  }
  if constexpr (Rows > 1)
    if (i < what.m)
      row_bands<Set, Vectors, Rows / 2>(what, steps, i);
}

template <class Set, class Steps>
MNEME_INLINE void multiply_by(const row_product& what, const Steps& steps) {
  constexpr int vectors = Set::accumulators == 16 ? 4 : 2;
  constexpr std::int64_t first_cache_floats = 8192; // of 32 KiB
  // Where all of b stays in the first-level cache, c is best streamed row by row; else b is read panel by panel.
  if (what.k * what.n <= first_cache_floats)
    row_bands<Set, vectors, Set::accumulators / vectors>(what, steps);
  else
    row_columns<Set, Set::lanes, vectors>(what, steps, 0);
}

template <class Set>
MNEME_INLINE void multiply_rows_body(const row_product& what) {
  if (what.b_at)
    multiply_by<Set>(what, listed_steps{what.a_at, what.b_at});
  else
    multiply_by<Set>(what, even_steps{what.a_step, what.b_step});
}

/// Sums of the lanes of four vectors, lane by lane in the same order for each of them.
template <int Lanes>
MNEME_INLINE void sum_lanes(const typename floats<Lanes>::type (&in)[4], floats<4>::type& out) {
  using four = floats<4>::type;
  if constexpr (Lanes == 16) {
    typename floats<8>::type half[4];
    for (int i = 0; i < 4; ++i)
      half[i] = __builtin_shufflevector(in[i], in[i], 0, 1, 2, 3, 4, 5, 6, 7) +
                __builtin_shufflevector(in[i], in[i], 8, 9, 10, 11, 12, 13, 14, 15);
    sum_lanes<8>(half, out);
  } else if constexpr (Lanes == 8) {
    four half[4];
    for (int i = 0; i < 4; ++i)
      half[i] = __builtin_shufflevector(in[i], in[i], 0, 1, 2, 3) + __builtin_shufflevector(in[i], in[i], 4, 5, 6, 7);
    sum_lanes<4>(half, out);
  } else {
    const four low =
        __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5) + __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
    const four high =
        __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5) + __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    out = __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
  }
}

template <int Rows>
struct dot_tile_rows {
  const float* a[Rows];
  const float* b[4]; // the last ones repeat where the matrix ends: computed and not stored
  floats<4>::type sums[Rows];
};

/// Adds terms p .. k to the tile's sums, in vectors of `Lanes`, then in narrower ones.
template <int Lanes, int Rows>
MNEME_INLINE void dot_terms(dot_tile_rows<Rows>& tile, std::int64_t p, std::int64_t k) {
  if constexpr (Lanes >= 4) {
    using vec = typename floats<Lanes>::type;
    if (p + Lanes <= k) {
      vec sums[Rows][4] = {};
      for (; p + Lanes <= k; p += Lanes) {
        vec right[4];
        for (int j = 0; j < 4; ++j)
          load(right[j], tile.b[j] + p);
        for (int r = 0; r < Rows; ++r) {
          vec left;
          load(left, tile.a[r] + p);
          for (int j = 0; j < 4; ++j)
            sums[r][j] += left * right[j];
        }
      }
      for (int r = 0; r < Rows; ++r) {
        floats<4>::type together;
        sum_lanes<Lanes>(sums[r], together);
        tile.sums[r] += together;
      }
    }
    if (p < k)
      dot_terms<Lanes / 2>(tile, p, k);
  } else {
    for (; p < k; ++p) { // in vectors too: scalars would be fused or not as the compiler unrolls them
      const floats<4>::type right{tile.b[0][p], tile.b[1][p], tile.b[2][p], tile.b[3][p]};
      for (int r = 0; r < Rows; ++r)
        tile.sums[r] += tile.a[r][p] * right;
    }
  }
}

template <class Set, int Rows>
MNEME_INLINE void dot_rows(const dot_product& what, std::int64_t j, std::int64_t i = 0) {
  const std::int64_t columns = what.n - j < 4 ? what.n - j : 4;
  floats<4>::type bias{};
  for (std::int64_t t = 0; t < columns && what.bias; ++t)
    bias[t] = what.bias[j + t];
  for (; i + Rows <= what.m; i += Rows) {
    dot_tile_rows<Rows> tile;
    for (int r = 0; r < Rows; ++r) {
      tile.a[r] = what.a + (i + r) * what.a_row;
      tile.sums[r] = floats<4>::type{};
    }
    for (int t = 0; t < 4; ++t) {
      const std::int64_t column = j + (t < columns ? t : columns - 1);
      tile.b[t] = what.b + (what.b_at ? what.b_at[column] : column * what.b_row);
    }
    dot_terms<Set::lanes>(tile, 0, what.k);
    for (int r = 0; r < Rows; ++r) {
      float* const c = what.c + (i + r) * what.c_row + j;
      const floats<4>::type value = what.scale * tile.sums[r] + bias;
      for (std::int64_t t = 0; t < columns; ++t)
        c[t] = what.add ? c[t] + value[t] : value[t];
    }
  }
  if constexpr (Rows > 1)
    if (i < what.m)
      dot_rows<Set, Rows == 6 ? 4 : Rows / 2>(what, j, i);
}

template <class Set>
MNEME_INLINE void multiply_dots_body(const dot_product& what) {
  for (std::int64_t j = 0; j < what.n; j += 4)
    dot_rows<Set, Set::accumulators == 16 ? 6 : 2>(what, j);
}

MNEME_KERNEL(multiply_rows, (const row_product& what), (what))
MNEME_KERNEL(multiply_dots, (const dot_product& what), (what))

} // namespace

void multiply(const row_product& what) { best_multiply_rows(what); }
void multiply(const dot_product& what) { best_multiply_dots(what); }

} // namespace mneme::kernels
