#include "runtime/kernels/products.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include "runtime/kernels/packed_rows.hpp"
#include "runtime/kernels/paired_dots.hpp"
#include <algorithm>
namespace mneme::kernels {
namespace {

// -- rows -------------------------------------------------------------------------------------------------------------

/// One tile of c: `Rows` rows from i, `Vectors` vectors of `Lanes` columns from j.
template <int Lanes, int Rows, int Vectors, bool Adds>
MNEME_INLINE void row_tile(const row_product& product, std::int64_t i, std::int64_t j) {
  using vec = typename floats<Lanes>::type;
  vec sums[Rows][Vectors] = {};
  const std::int64_t a_row = product.a_row, a_step = product.a_step, b_row = product.b_row, c_row = product.c_row;
  const float* a = product.a + i * a_row;
  const float* b = product.b + j;
  for (std::int64_t p = 0; p < product.k; ++p, a += a_step, b += b_row) {
    vec column[Vectors];
    for (int v = 0; v < Vectors; ++v)
      load(column[v], b + v * Lanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = a[r * a_row];
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += factor * column[v];
    }
  }
  const float scale = product.scale;
  const float* const before = product.before + i * c_row + j;
  float* const c = product.c + i * c_row + j;
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (Adds) {
        vec there;
        load(there, before + r * c_row + v * Lanes);
        store(c + r * c_row + v * Lanes, vec(scale * sums[r][v] + there));
      } else {
        store(c + r * c_row + v * Lanes, vec(scale * sums[r][v]));
      }
    }
}

/// Computes the columns from j on, which do not fill a panel, for `Rows` rows, with successively narrower vectors.
template <int Lanes, int Vectors, int Rows, bool Adds>
MNEME_INLINE void row_rest(const row_product& product, std::int64_t i, std::int64_t j) {
  if constexpr (Vectors > 0) {
    if (j + Lanes * Vectors <= product.n) {
      row_tile<Lanes, Rows, Vectors, Adds>(product, i, j);
      j += Lanes * Vectors;
    }
    if (j < product.n)
      row_rest<Lanes, Vectors / 2, Rows, Adds>(product, i, j);
  } else if constexpr (Lanes > 1) {
    row_rest<Lanes / 2, 1, Rows, Adds>(product, i, j);
  }
}

/// Computes columns `first` to `last` of the rows from i on, panel by panel, in tiles of `Rows` rows. The remaining
/// rows are in smaller tiles.
template <class Set, int Rows, bool Adds>
MNEME_INLINE void row_bands(const row_product& product, std::int64_t i, std::int64_t first, std::int64_t last) {
  constexpr int vectors = Set::accumulators == 16 ? 4 : 2;
  for (; i + Rows <= product.m; i += Rows) {
    std::int64_t j = first;
    for (; j + Set::lanes * vectors <= last; j += Set::lanes * vectors)
      row_tile<Set::lanes, Rows, vectors, Adds>(product, i, j);
    if (j < last)
      row_rest<Set::lanes, vectors / 2, Rows, Adds>(product, i, j);
  }
  if constexpr (Rows > 1)
    if (i < product.m)
      row_bands<Set, Rows / 2, Adds>(product, i, first, last);
}

template <class Set, bool Adds>
MNEME_INLINE void all_rows(const row_product& product) {
  // If all of b fits into the L1 cache, c is streamed row by row. Otherwise as many columns of b as fit are processed
  // together, since reading a short run from memory takes as long as a long one.
  constexpr std::int64_t run = 64;
  const bool run_stays = product.k * run <= first_cache_floats;
  const auto columns = product.k * product.n <= first_cache_floats ? product.n
                       : run_stays                                 ? std::max(run, panel_columns<Set>)
                                                                   : panel_columns<Set>;
  for (std::int64_t j = 0; j < product.n; j += columns) {
    const auto last = j + columns < product.n ? j + columns : product.n;
    if (product.m % 5 == 0)
      row_bands<Set, 5, Adds>(product, 0, j, last);
    else
      row_bands<Set, 4, Adds>(product, 0, j, last);
  }
}

template <class Set, bool Adds>
MNEME_INLINE void packed_and_rest(const row_product& product) {
  multiply_packed<Set, Adds>(product);
  auto left = product;
  const auto done = product.n / panel_columns<Set> * panel_columns<Set>;
  left.b += done;
  left.c += done;
  left.n -= done;
  if constexpr (Adds)
    left.before += done;
  all_rows<Set, Adds>(left);
}

template <class Set>
MNEME_INLINE void multiply_rows_body(const row_product& in) {
  const row_product product = in; // copied, because stores to c could otherwise change it
  if (pays_to_pack(product))
    product.before ? packed_and_rest<Set, true>(product) : packed_and_rest<Set, false>(product);
  else
    product.before ? all_rows<Set, true>(product) : all_rows<Set, false>(product);
}

// -- dots -------------------------------------------------------------------------------------------------------------

/// Horizontal sums of sixteen, eight or four vectors: lane 4 r + c of the result is the sum of in[c][r]. Halves are
/// added until one lane is left, in the same order for every vector.
MNEME_INLINE void sum_lanes(const floats<16>::type (&in)[4][4], floats<16>::type& out) {
  using vec = floats<16>::type;
  vec four[4]; // for each column, sums of the four rows
  for (int c = 0; c < 4; ++c) {
    vec two[2];
    for (int half = 0; half < 2; ++half) {
      const vec a = in[c][2 * half], b = in[c][2 * half + 1];
      two[half] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                  __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    }
    four[c] = __builtin_shufflevector(two[0], two[1], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
              __builtin_shufflevector(two[0], two[1], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
  vec pairs[2];
  for (int half = 0; half < 2; ++half) {
    const vec a = four[2 * half], b = four[2 * half + 1];
    pairs[half] = __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                  __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  }
  out = __builtin_shufflevector(pairs[0], pairs[1], 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
        __builtin_shufflevector(pairs[0], pairs[1], 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}
MNEME_INLINE void sum_lanes(const floats<8>::type (&in)[4][2], floats<8>::type& out) {
  using vec = floats<8>::type;
  vec four[4], pairs[2];
  for (int c = 0; c < 4; ++c)
    four[c] = __builtin_shufflevector(in[c][0], in[c][1], 0, 1, 2, 3, 8, 9, 10, 11) +
              __builtin_shufflevector(in[c][0], in[c][1], 4, 5, 6, 7, 12, 13, 14, 15);
  for (int half = 0; half < 2; ++half)
    pairs[half] = __builtin_shufflevector(four[2 * half], four[2 * half + 1], 0, 1, 8, 9, 4, 5, 12, 13) +
                  __builtin_shufflevector(four[2 * half], four[2 * half + 1], 2, 3, 10, 11, 6, 7, 14, 15);
  out = __builtin_shufflevector(pairs[0], pairs[1], 0, 2, 8, 10, 4, 6, 12, 14) +
        __builtin_shufflevector(pairs[0], pairs[1], 1, 3, 9, 11, 5, 7, 13, 15);
}
MNEME_INLINE void sum_lanes(const floats<4>::type (&in)[4][1], floats<4>::type& out) {
  using vec = floats<4>::type;
  vec pairs[2];
  for (int half = 0; half < 2; ++half)
    pairs[half] = __builtin_shufflevector(in[2 * half][0], in[2 * half + 1][0], 0, 1, 4, 5) +
                  __builtin_shufflevector(in[2 * half][0], in[2 * half + 1][0], 2, 3, 6, 7);
  out =
      __builtin_shufflevector(pairs[0], pairs[1], 0, 2, 4, 6) + __builtin_shufflevector(pairs[0], pairs[1], 1, 3, 5, 7);
}

/// Reads the last terms of a dot product, which do not fill a vector: it reads the last whole vector of terms and masks
/// those that were already added.
template <int Lanes>
struct dot_tail {
  using bits = typename masks<Lanes>::type;
  std::int64_t from = 0; ///< Offset of the vector.
  bits kept{};
  MNEME_INLINE explicit dot_tail(std::int64_t k) : from(k - Lanes) {
    for (int i = 0; i < Lanes; ++i)
      kept[i] = i >= Lanes - k % Lanes ? -1 : 0;
  }
  MNEME_INLINE void read(typename floats<Lanes>::type& to, const float* row) const {
    load(to, row + from);
    to = (typename floats<Lanes>::type)((bits)to & kept);
  }
};

/// Computes `Rows` rows from i and `Columns` columns from j.
template <int Lanes, int Rows, int Columns>
MNEME_INLINE void dot_tile(const dot_product& product, const dot_tail<Lanes>& tail, std::int64_t i, std::int64_t j) {
  using vec = typename floats<Lanes>::type;
  constexpr int together = (Rows * Columns + Lanes - 1) / Lanes; // number of vectors of sums
  const std::int64_t there = product.n - j < Columns ? product.n - j : Columns;
  const float *a[Rows], *b[Columns]; // beyond the end of the matrix the last column is repeated; its results are not
                                     // stored
  for (int r = 0; r < Rows; ++r)
    a[r] = product.a + (i + r) * product.a_row;
  for (int c = 0; c < Columns; ++c)
    b[c] = product.b + (j + (c < there ? c : there - 1)) * product.b_row;
  vec sums[together][4][Lanes / 4] = {}; // element e = Columns * r + c is in lane e of each vector
  const auto sum = [&sums](int e) -> vec& { return sums[e / Lanes][e % 4][e % Lanes / 4]; };
  std::int64_t p = 0;
  for (; p + Lanes <= product.k; p += Lanes)
    for (int first = 0; first < Columns; first += 4) {
      constexpr int some = Columns < 4 ? Columns : 4;
      vec right[some];
      for (int c = 0; c < some; ++c)
        load(right[c], b[first + c] + p);
      for (int r = 0; r < Rows; ++r) {
        vec left;
        load(left, a[r] + p);
        for (int c = 0; c < some; ++c)
          sum(Columns * r + first + c) += left * right[c];
      }
    }
  if (p < product.k)
    for (int c = 0; c < Columns; ++c) {
      vec left, right;
      tail.read(right, b[c]);
      for (int r = 0; r < Rows; ++r) {
        tail.read(left, a[r]);
        sum(Columns * r + c) += left * right;
      }
    }
  float values[together * Lanes];
  vec lanes;
  for (int t = 0; t < together; ++t)
    sum_lanes(sums[t], lanes), store(values + t * Lanes, lanes);
  for (int first = 0; first < Columns; first += 4) {
    const std::int64_t some = there - first;
    floats<4>::type bias{};
    if (some >= 4)
      load(bias, product.bias + j + first);
    else
      for (std::int64_t c = 0; c < some; ++c)
        bias[c] = product.bias[j + first + c];
    for (int r = 0; r < Rows; ++r) {
      float* const to = product.c + (i + r) * product.c_row + j + first;
      floats<4>::type row;
      load(row, values + Columns * r + first);
      row += bias;
      if (some >= 4)
        store(to, row);
      else
        for (std::int64_t c = 0; c < some; ++c)
          to[c] = row[c];
    }
  }
}

/// Computes columns `first` to `last` of the rows from i on, in tiles of `Rows` rows. The remaining rows are in tiles
/// with fewer rows and more columns.
template <int Lanes, int Rows, int Columns>
MNEME_INLINE void dot_rows(const dot_product& product, const dot_tail<Lanes>& tail, std::int64_t i, std::int64_t first,
                           std::int64_t last) {
  for (; i + Rows <= product.m; i += Rows)
    for (auto j = first; j < last; j += Columns)
      dot_tile<Lanes, Rows, Columns>(product, tail, i, j);
  if constexpr (Rows > 1 && Rows < 5)
    if (i < product.m)
      dot_rows<Lanes, Rows / 2, 2 * Columns>(product, tail, i, first, last);
}

/// Computes all of c with vectors of `Lanes` floats. Sums with fewer terms use narrower vectors.
template <int Lanes>
MNEME_INLINE void dots_by(const dot_product& product) {
  if constexpr (Lanes < 4) {
    for (std::int64_t i = 0; i < product.m; ++i)
      for (std::int64_t j = 0; j < product.n; ++j) {
        float sum = 0.0F;
        for (std::int64_t p = 0; p < product.k; ++p)
          sum += product.a[i * product.a_row + p] * product.b[j * product.b_row + p];
        product.c[i * product.c_row + j] = sum + product.bias[j];
      }
  } else if (product.k < Lanes) {
    dots_by<Lanes / 2>(product);
  } else {
    const dot_tail<Lanes> tail(product.k);
    constexpr std::int64_t many_terms = 256; // with so many terms the time for the reduction of lanes does not matter
    const bool is_long = Lanes == 16 && product.k >= many_terms;
    // Number of columns of b that all rows read before the next columns. Every row of a is read again for each group of
    // columns. If the rows do not fit into the L1 cache together, the group is therefore as large as the cache allows.
    const bool rows_stay = product.m * product.k <= first_cache_floats;
    const std::int64_t cached = first_cache_floats / product.k / 4 * 4;
    const std::int64_t columns = !is_long ? Lanes : rows_stay || cached < 4 ? 4 : cached;
    for (std::int64_t j = 0; j < product.n; j += columns) {
      const auto last = j + columns < product.n ? j + columns : product.n;
      if constexpr (Lanes == 16)
        if (is_long && product.m % 5 == 0) {
          dot_rows<Lanes, 5, 4>(product, tail, 0, j, last);
          continue;
        }
      dot_rows<Lanes, Lanes / 4, 4>(product, tail, 0, j, last);
    }
  }
}

template <class Set>
MNEME_INLINE void multiply_dots_body(const dot_product& in) {
  const dot_product product = in; // copied, because stores to c could otherwise change it
  constexpr int lanes = Set::sum_lanes;
  if constexpr (lanes < Set::lanes)
    if (product.k >= lanes)
      return paired_dots(product, dot_tail<lanes>(product.k));
  dots_by<lanes>(product);
}

MNEME_KERNEL(multiply_rows, (const row_product& product), (product))
MNEME_SUMMING_KERNEL(multiply_dots, (const dot_product& product), (product))

} // namespace

void multiply(const row_product& product) { best_multiply_rows(product); }
void multiply(const dot_product& product) { best_multiply_dots(product); }

} // namespace mneme::kernels
