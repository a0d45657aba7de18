#include "runtime/kernels/normalization.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include <algorithm>
#include <vector>
namespace mneme::kernels {
namespace {

constexpr std::int64_t block_rows = 64; // number of rows that are summed in float32

/// Loads a vector of which the first n values are used; the others are unspecified. Does not read beyond `end`.
template <int Lanes>
MNEME_INLINE void load_some(typename floats<Lanes>::type& to, const float* from, std::int64_t n, const float* end) {
  if (end - from >= Lanes)
    return load(to, from);
  float values[Lanes] = {};
  for (std::int64_t i = 0; i < n; ++i)
    values[i] = from[i];
  load(to, values);
}

/// Accumulates two sums per column over all rows: `take(row, first column, n, sum, other)` adds n <= Lanes columns. The
/// sums of a column do not depend on the number of columns in the same registers.
template <int Lanes, class Take>
MNEME_INLINE void sum_blocks(std::int64_t rows, std::int64_t columns, double* sums, double* others, Take take) {
  using vec = typename floats<Lanes>::type;
  std::fill_n(sums, columns, 0.0);
  std::fill_n(others, columns, 0.0);
  for (std::int64_t row = 0; row < rows; row += block_rows) {
    const std::int64_t end = row + block_rows < rows ? row + block_rows : rows;
    for (std::int64_t c = 0; c < columns; c += Lanes) {
      vec sum{}, other{};
      if (c + Lanes <= columns)
        for (std::int64_t r = row; r < end; ++r)
          take(r, c, Lanes, sum, other);
      else
        for (std::int64_t r = row; r < end; ++r)
          take(r, c, columns - c, sum, other);
      for (std::int64_t i = 0; i < Lanes && c + i < columns; ++i)
        sums[c + i] += sum[i], others[c + i] += other[i];
    }
  }
}

template <class Set>
MNEME_INLINE void sum_columns_body(float* out, const float* in, std::int64_t rows, std::int64_t columns, float scale,
                                   bool add) {
  using vec = typename floats<Set::lanes>::type;
  constexpr std::int64_t panel = 256; // number of columns whose sums fit into registers together
  double sums[panel], none[panel];
  for (std::int64_t first = 0; first < columns; first += panel) {
    const std::int64_t count = columns - first < panel ? columns - first : panel;
    const auto take = [&](std::int64_t r, std::int64_t c, std::int64_t n, vec & sum, vec&)
        __attribute__((always_inline)) {
      vec x;
      load_some<Set::lanes>(x, in + r * columns + first + c, n, in + rows * columns);
      sum += x;
    };
    sum_blocks<Set::lanes>(rows, count, sums, none, take);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto value = scale * static_cast<float>(sums[i]);
      out[first + i] = add ? out[first + i] + value : value;
    }
  }
}

template <class Set>
MNEME_INLINE void sum_active_columns_body(float* out, float* d, const float* y, std::int64_t rows, std::int64_t columns,
                                          float scale, bool add) {
  constexpr std::int64_t cached_rows = 256;
  for (std::int64_t row = 0; row < rows; row += cached_rows) {
    const std::int64_t count = rows - row < cached_rows ? rows - row : cached_rows;
    float* const __restrict shown = d + row * columns;
    const float* const __restrict weights = y + row * columns;
    for (std::int64_t i = 0; i < count * columns; ++i)
      shown[i] = weights[i] <= 0.0F ? 0.0F : shown[i];
    sum_columns_body<Set>(out, shown, count, columns, scale, add || row > 0);
  }
}

template <class Set>
MNEME_INLINE void shifted_moments_body(const float* __restrict x, std::int64_t rows, std::int64_t columns, double* sums,
                                       double* squares) {
  using vec = typename floats<Set::lanes>::type;
  const auto take = [&](std::int64_t r, std::int64_t c, std::int64_t n, vec & sum, vec & square)
      __attribute__((always_inline)) {
    vec value, pivot;
    load_some<Set::lanes>(value, x + r * columns + c, n, x + rows * columns);
    load_some<Set::lanes>(pivot, x + c, n, x + rows * columns);
    value -= pivot;
    sum += value;
    square += value * value;
  };
  sum_blocks<Set::lanes>(rows, columns, sums, squares, take);
}

template <class Set>
MNEME_INLINE void scale_columns_body(const float* __restrict x, std::int64_t rows, std::int64_t columns,
                                     const float* __restrict scale, const float* __restrict shift, bool relu,
                                     float* __restrict y) {
  for (std::int64_t r = 0; r < rows; ++r, x += columns, y += columns)
    for (std::int64_t c = 0; c < columns; ++c) {
      const float value = x[c] * scale[c] + shift[c];
      y[c] = relu && value <= 0.0F ? 0.0F : value;
    }
}

template <class Set>
MNEME_INLINE void sum_gradients_body(const normalized& in, double* sums, double* products) {
  using vec = typename floats<Set::lanes>::type;
  const normalized read = in; // copied, because stores could otherwise change it
  const std::int64_t count = read.rows * read.columns;
  std::vector<float> means(read.mean, read.mean + read.columns); // padded to whole vectors
  means.resize(static_cast<std::size_t>(read.columns + Set::lanes));
  const auto take = [&](std::int64_t r, std::int64_t c, std::int64_t n, vec & sum, vec & product)
      __attribute__((always_inline)) {
    vec d, x, mean;
    load_some<Set::lanes>(d, read.d + r * read.columns + c, n, read.d + count);
    load_some<Set::lanes>(x, read.x + r * read.columns + c, n, read.x + count);
    load(mean, means.data() + c);
    if (read.y) {
      vec y;
      load_some<Set::lanes>(y, read.y + r * read.columns + c, n, read.y + count);
      d = y > 0.0F ? d : vec{};
    }
    sum += d;
    product += d * (x - mean);
  };
  sum_blocks<Set::lanes>(read.rows, read.columns, sums, products, take);
}

template <class Set>
MNEME_INLINE void scale_gradients_body(const normalized& in, const float* __restrict scale,
                                       const float* __restrict slope, const float* __restrict shift,
                                       float* __restrict dx) {
  const normalized rows = in;
  for (std::int64_t r = 0; r < rows.rows; ++r, dx += rows.columns) {
    const float* const d = rows.d + r * rows.columns;
    const float* const x = rows.x + r * rows.columns;
    const float* const y = rows.y ? rows.y + r * rows.columns : nullptr;
    if (y)
      for (std::int64_t c = 0; c < rows.columns; ++c)
        dx[c] = (y[c] > 0.0F ? d[c] : 0.0F) * scale[c] + ((x[c] - rows.mean[c]) * slope[c] + shift[c]);
    else
      for (std::int64_t c = 0; c < rows.columns; ++c)
        dx[c] = d[c] * scale[c] + ((x[c] - rows.mean[c]) * slope[c] + shift[c]);
  }
}

MNEME_KERNEL(sum_columns, (float* out, const float* in, std::int64_t rows, std::int64_t columns, float scale, bool add),
             (out, in, rows, columns, scale, add))
MNEME_KERNEL(sum_active_columns,
             (float* out, float* d, const float* y, std::int64_t rows, std::int64_t columns, float scale, bool add),
             (out, d, y, rows, columns, scale, add))
MNEME_KERNEL(shifted_moments, (const float* x, std::int64_t rows, std::int64_t columns, double* sums, double* squares),
             (x, rows, columns, sums, squares))
MNEME_KERNEL(scale_columns,
             (const float* x, std::int64_t rows, std::int64_t columns, const float* scale, const float* shift,
              bool relu, float* y),
             (x, rows, columns, scale, shift, relu, y))
MNEME_KERNEL(sum_gradients, (const normalized& in, double* sums, double* products), (in, sums, products))
MNEME_KERNEL(scale_gradients,
             (const normalized& in, const float* scale, const float* slope, const float* shift, float* dx),
             (in, scale, slope, shift, dx))

} // namespace

void sum_columns(float* out, const float* in, std::int64_t rows, std::int64_t columns, float scale, bool add) {
  best_sum_columns(out, in, rows, columns, scale, add);
}
void sum_active_columns(float* out, float* d, const float* y, std::int64_t rows, std::int64_t columns, float scale,
                        bool add) {
  best_sum_active_columns(out, d, y, rows, columns, scale, add);
}
void shifted_moments(const float* x, std::int64_t rows, std::int64_t columns, double* sums, double* squares) {
  best_shifted_moments(x, rows, columns, sums, squares);
}
void scale_columns(const float* x, std::int64_t rows, std::int64_t columns, const float* scale, const float* shift,
                   bool relu, float* y) {
  best_scale_columns(x, rows, columns, scale, shift, relu, y);
}
void sum_gradients(const normalized& in, double* sums, double* products) { best_sum_gradients(in, sums, products); }
void scale_gradients(const normalized& in, const float* scale, const float* slope, const float* shift, float* dx) {
  best_scale_gradients(in, scale, slope, shift, dx);
}

} // namespace mneme::kernels
