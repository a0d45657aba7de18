#include "runtime/kernels/token_rows.hpp"
#include "runtime/kernels/vector_steps.hpp"
#include <cmath>
#include <vector>
namespace mneme::kernels {
namespace {

/// Computes the normal distribution function Phi(x) and `bell` = e^(-x^2 / 2), which is proportional to its density.
template <int Lanes>
MNEME_INLINE void distribute(const typename floats<Lanes>::type& x, typename floats<Lanes>::type& phi,
                             typename floats<Lanes>::type& bell) {
  using vec = typename floats<Lanes>::type;
  bell = x * x * -0.5F;
  exp_nonpositive<Lanes>(bell);
  const vec t = (x < 0.0F ? -x : x) * 0.707106781F;
  const vec u = 1.0F / (1.0F + 0.3F * t);
  // erfc(t) = e^(-t^2) u p(u), as in Abramowitz and Stegun 7.1.26, but with a minimax polynomial p of degree 8. The
  // error is at most 2e-8.
  vec p = u * -0.129406784F + 0.484952816F;
  p = p * u - 0.510902329F;
  p = p * u + 0.545985989F;
  p = p * u - 0.0933159035F;
  p = p * u + 0.214284448F;
  p = p * u + 0.148526951F;
  p = p * u + 0.170684676F;
  p = p * u + 0.169190118F;
  const vec tail = 0.5F * bell * u * p;
  phi = x < 0.0F ? tail : 1.0F - tail;
}

struct gelu_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    typename floats<Lanes>::type phi, bell;
    distribute<Lanes>(x[0], phi, bell);
    y = x[0] * phi;
  }
};

struct gelu_backward_step {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& dx, const typename floats<Lanes>::type (&in)[2]) const {
    constexpr float bell_height = 0.398942280F; // 1 / sqrt(2 pi)
    typename floats<Lanes>::type phi, bell;
    distribute<Lanes>(in[1], phi, bell);
    dx = in[0] * (phi + in[1] * bell * bell_height);
  }
};

template <class Set>
MNEME_INLINE void gelu_body(float* y, const float* x, std::int64_t n) {
  const float* const in[] = {x};
  for_vectors<Set::lanes>(y, in, n, gelu_step{});
}

template <class Set>
MNEME_INLINE void gelu_backward_body(float* dx, const float* d, const float* x, std::int64_t n) {
  const float* const in[] = {d, x};
  for_vectors<Set::lanes>(dx, in, n, gelu_backward_step{});
}

// -- rows -------------------------------------------------------------------------------------------------------------

/// Sums the results of `term` over the vectors of a row; the last vector is padded with `filler`.
template <int Lanes, int Inputs, int Sums, class Term>
MNEME_INLINE void sum_row(float (&totals)[Sums], const float* const (&in)[Inputs], std::int64_t columns, float filler,
                          const Term& term) {
  using vec = typename floats<Lanes>::type;
  vec x[Inputs], sums[Sums] = {};
  std::int64_t c = 0;
  for (; c + Lanes <= columns; c += Lanes) {
    for (int j = 0; j < Inputs; ++j)
      load(x[j], in[j] + c);
    term.template operator()<Lanes>(sums, x);
  }
  if (c < columns) {
    float tail[Lanes];
    for (int j = 0; j < Inputs; ++j) {
      for (std::int64_t k = 0; k < Lanes; ++k)
        tail[k] = c + k < columns ? in[j][c + k] : filler;
      load(x[j], tail);
    }
    term.template operator()<Lanes>(sums, x);
  }
  for (int s = 0; s < Sums; ++s) {
    totals[s] = 0.0F;
    for (int lane = 0; lane < Lanes; ++lane)
      totals[s] += sums[s][lane];
  }
}

struct plain_term {
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type (&sums)[1],
                               const typename floats<Lanes>::type (&x)[1]) const {
    sums[0] += x[0];
  }
};

struct square_term { // padding has the value of the mean, so it adds 0
  float mean;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type (&sums)[1],
                               const typename floats<Lanes>::type (&x)[1]) const {
    const typename floats<Lanes>::type beside = x[0] - mean;
    sums[0] += beside * beside;
  }
};

struct exponential_step {
  float scale, largest;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    y = (x[0] - largest) * scale;
    exp_nonpositive<Lanes>(y);
  }
};

struct factor_step {
  float factor;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&x)[1]) const {
    y = x[0] * factor;
  }
};

template <int Lanes>
MNEME_INLINE float largest_of(const float* x, std::int64_t columns) {
  typename floats<Lanes>::type best, next;
  float result = x[0];
  std::int64_t c = 0;
  if (columns >= Lanes) {
    load(best, x);
    for (c = Lanes; c + Lanes <= columns; c += Lanes) {
      load(next, x + c);
      best = next > best ? next : best;
    }
    for (int lane = 0; lane < Lanes; ++lane)
      result = best[lane] > result ? best[lane] : result;
  }
  for (; c < columns; ++c)
    result = x[c] > result ? x[c] : result;
  return result;
}

template <class Set>
MNEME_INLINE void softmax_rows_body(float* x, std::int64_t rows, std::int64_t columns, float scale) {
  constexpr int lanes = Set::lanes;
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = x + row * columns;
    const float* const in[] = {to};
    for_vectors<lanes>(to, in, columns, exponential_step{scale, largest_of<Set::sum_lanes>(to, columns)});
    float total[1];
    sum_row<Set::sum_lanes>(total, in, columns, 0.0F, plain_term{});
    for_vectors<lanes>(to, in, columns, factor_step{1.0F / total[0]});
  }
}

// -- layer normalization ----------------------------------------------------------------------------------------------

struct normalize_step {
  float mean, scale;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&in)[3]) const {
    y = (in[0] - mean) * scale * in[1] + in[2];
  }
};

template <class Set>
MNEME_INLINE void normalize_rows_body(float* y, float* statistics, const normalized_rows& rows) {
  constexpr int lanes = Set::lanes;
  const auto count = static_cast<float>(rows.columns);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const float* const x[] = {rows.x + row * rows.columns};
    float sum[1];
    sum_row<Set::sum_lanes>(sum, x, rows.columns, 0.0F, plain_term{});
    const float mean = sum[0] / count;
    sum_row<Set::sum_lanes>(sum, x, rows.columns, mean, square_term{mean});
    const float scale = 1.0F / std::sqrt(sum[0] / count + rows.epsilon);
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
    const float* const in[] = {x[0], rows.weight, rows.bias};
    for_vectors<lanes>(y + row * rows.columns, in, rows.columns, normalize_step{mean, scale});
  }
}

struct gradient_term { // sums of g = d w and of g (x - mean)
  float mean;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type (&sums)[2],
                               const typename floats<Lanes>::type (&in)[3]) const {
    const typename floats<Lanes>::type g = in[0] * in[2];
    sums[0] += g;
    sums[1] += g * (in[1] - mean);
  }
};

struct gradient_step { // scale (g - mean of g - (x - mean) slope)
  float mean, scale, g_mean, slope;
  template <int Lanes>
  MNEME_INLINE void operator()(typename floats<Lanes>::type& y, const typename floats<Lanes>::type (&in)[3]) const {
    y = scale * ((in[0] * in[2] - g_mean) - (in[1] - mean) * slope);
  }
};

/// Adds d (x - mean) scale to `d_weight` and d to `d_bias`, per column.
MNEME_INLINE void add_parameter_gradients(float* d_weight, float* d_bias, const float* d, const float* x, float mean,
                                          float scale, std::int64_t columns) {
  for (std::int64_t c = 0; c < columns; ++c) {
    d_weight[c] += d[c] * ((x[c] - mean) * scale);
    d_bias[c] += d[c];
  }
}

template <class Set>
MNEME_INLINE void normalize_rows_backward_body(float* dx, double* d_weight, double* d_bias, const float* d,
                                               const float* statistics, const normalized_rows& rows) {
  constexpr int lanes = Set::lanes;
  constexpr std::int64_t block_rows = 64; // number of rows that are summed in float32
  const auto count = static_cast<float>(rows.columns);
  std::vector<float> sums(static_cast<std::size_t>(d_weight ? 2 * rows.columns : 0));
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const float mean = statistics[2 * row], scale = statistics[2 * row + 1];
    const float* const in[] = {d + row * rows.columns, rows.x + row * rows.columns, rows.weight};
    if (d_weight)
      add_parameter_gradients(sums.data(), sums.data() + rows.columns, in[0], in[1], mean, scale, rows.columns);
    if (dx) {
      float total[2];
      sum_row<Set::sum_lanes>(total, in, rows.columns, 0.0F, gradient_term{mean});
      const gradient_step step{mean, scale, total[0] / count, total[1] / count * scale * scale};
      for_vectors<lanes>(dx + row * rows.columns, in, rows.columns, step);
    }
    if (!d_weight || ((row + 1) % block_rows != 0 && row + 1 < rows.rows))
      continue;
    for (std::int64_t c = 0; c < rows.columns; ++c) {
      d_weight[c] += static_cast<double>(sums[static_cast<std::size_t>(c)]);
      d_bias[c] += static_cast<double>(sums[static_cast<std::size_t>(rows.columns + c)]);
    }
    sums.assign(sums.size(), 0.0F);
  }
}

MNEME_KERNEL(gelu, (float* y, const float* x, std::int64_t n), (y, x, n))
MNEME_KERNEL(gelu_backward, (float* dx, const float* d, const float* x, std::int64_t n), (dx, d, x, n))
MNEME_SUMMING_KERNEL(softmax_rows, (float* x, std::int64_t rows, std::int64_t columns, float scale),
                     (x, rows, columns, scale))
MNEME_SUMMING_KERNEL(normalize_rows, (float* y, float* statistics, const normalized_rows& rows), (y, statistics, rows))
MNEME_SUMMING_KERNEL(normalize_rows_backward,
                     (float* dx, double* d_weight, double* d_bias, const float* d, const float* statistics,
                      const normalized_rows& rows),
                     (dx, d_weight, d_bias, d, statistics, rows))

} // namespace

void gelu(float* y, const float* x, std::int64_t n) { best_gelu(y, x, n); }

void gelu_backward(float* dx, const float* d, const float* x, std::int64_t n) { best_gelu_backward(dx, d, x, n); }

void softmax_rows(float* x, std::int64_t rows, std::int64_t columns, float scale) {
  best_softmax_rows(x, rows, columns, scale);
}

void normalize_rows(float* y, float* statistics, const normalized_rows& rows) {
  best_normalize_rows(y, statistics, rows);
}

void normalize_rows_backward(float* dx, double* d_weight, double* d_bias, const float* d, const float* statistics,
                             const normalized_rows& rows) {
  best_normalize_rows_backward(dx, d_weight, d_bias, d, statistics, rows);
}

} // namespace mneme::kernels
