#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include <bit>
#include <cmath>
namespace mneme::kernels {
namespace {

template <class Set>
MNEME_INLINE void relu_body(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

template <class Set>
MNEME_INLINE void relu_backward_body(float* __restrict d, const float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    d[i] = y[i] <= 0.0F ? 0.0F : d[i];
}

template <class Set>
MNEME_INLINE void add_body(float* __restrict out, const float* __restrict a, const float* __restrict b, std::int64_t n,
                           bool relu) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = a[i] + b[i];
    out[i] = relu && sum <= 0.0F ? 0.0F : sum;
  }
}

template <class Set>
MNEME_INLINE void scale_body(float* x, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] *= factor;
}

template <class Set>
MNEME_INLINE void add_proximal_gradient_body(float* __restrict g, const float* __restrict w,
                                             const float* __restrict start, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i)
    g[i] += factor * (w[i] - start[i]);
}

/// Sums columns [c, c + Lanes); the sums stay in registers.
template <int Lanes>
MNEME_INLINE void sum_columns(const row_sums& operands, std::int64_t c) {
  using vec = typename floats<Lanes>::type;
  vec sums{}, term;
  for (std::int64_t row = 0; row < operands.rows; ++row) {
    load(term, operands.in + row * operands.columns + c);
    sums += term;
  }
  if (operands.before) {
    load(term, operands.before + c);
    store(operands.out + c, vec(operands.scale * sums + term));
  } else {
    store(operands.out + c, vec(operands.scale * sums));
  }
}
template <int Lanes>
MNEME_INLINE void sum_columns_from(const row_sums& sums, std::int64_t c) {
  for (; c + Lanes <= sums.columns; c += Lanes)
    sum_columns<Lanes>(sums, c);
  if constexpr (Lanes > 1)
    if (c < sums.columns)
      sum_columns_from<Lanes / 2>(sums, c);
}
template <class Set>
MNEME_INLINE void sum_rows_body(const row_sums& in) {
  const row_sums sums = in; // copied, because stores to out could otherwise change it
  sum_columns_from<Set::lanes>(sums, 0);
}

template <class Set>
MNEME_INLINE void add_squares_body(double& total, const float* x, std::int64_t n) {
  constexpr int lanes = 16;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(x[i + lane]) * x[i + lane];
  for (; i < n; ++i)
    sums[0] += static_cast<double>(x[i]) * x[i];
  for (const double sum : sums)
    total += sum;
}

template <class Set>
MNEME_INLINE void add_products_body(double& total, const float* a, const float* b, std::int64_t n) {
  constexpr int lanes = 16;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane)
      sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
  for (; i < n; ++i)
    sums[0] += static_cast<double>(a[i]) * b[i];
  for (const double sum : sums)
    total += sum;
}

template <class Set>
MNEME_INLINE void add_square_distance_body(double& total, const float* a, const float* b, std::int64_t n) {
  constexpr int lanes = 16;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) {
      const double apart = static_cast<double>(a[i + lane]) - b[i + lane];
      sums[lane] += apart * apart;
    }
  for (; i < n; ++i) {
    const double apart = static_cast<double>(a[i]) - b[i];
    sums[0] += apart * apart;
  }
  for (const double sum : sums)
    total += sum;
}

template <class Set>
MNEME_INLINE void check_finite_body(bool& finite, const float* x, std::int64_t n) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < n; ++i)
    bits |= (std::bit_cast<std::uint32_t>(x[i]) & 0x7f800000U) == 0x7f800000U ? 1U : 0U;
  if (bits)
    finite = false;
}

template <class Set>
MNEME_INLINE void sgd_body(float* __restrict w, const float* __restrict g, float* __restrict v, std::int64_t n,
                           const sgd_step& with) {
  const float rate = with.learning_rate, momentum = with.momentum, decay = with.weight_decay;
  if (v)
    for (std::int64_t i = 0; i < n; ++i) {
      v[i] = momentum * v[i] + (g[i] + decay * w[i]);
      w[i] -= rate * v[i];
    }
  else
    for (std::int64_t i = 0; i < n; ++i)
      w[i] -= rate * (g[i] + decay * w[i]);
}

template <class Set>
MNEME_INLINE void adam_body(float* __restrict w, const float* __restrict g, float* __restrict m, float* __restrict v,
                            std::int64_t n, const adam_step& in) {
  const adam_step with = in; // copied, because stores to w could otherwise change it
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] + with.decay * w[i];
    m[i] += (1.0F - with.first) * (gradient - m[i]);
    v[i] = with.second * v[i] + (1.0F - with.second) * gradient * gradient;
    const float root = std::sqrt(v[i]) / with.root_correction + with.epsilon;
    w[i] = with.shrink * w[i] - with.step_size * m[i] / root;
  }
}

template <class Set, class Pixel>
MNEME_INLINE void normalize_any(float* __restrict out, const Pixel* __restrict in, std::int64_t n,
                                const pixel_scale& with) {
  const float brightness = with.brightness, scale = with.scale, shift = with.shift;
  for (std::int64_t i = 0; i < n; ++i) {
    const float bright = static_cast<float>(in[i]) * brightness;
    out[i] = (bright > 255.0F ? 255.0F : bright) * scale + shift;
  }
}
template <class Set>
MNEME_INLINE void normalize_bytes_body(float* out, const std::uint8_t* in, std::int64_t n, const pixel_scale& with) {
  normalize_any<Set>(out, in, n, with);
}
template <class Set>
MNEME_INLINE void normalize_floats_body(float* out, const float* in, std::int64_t n, const pixel_scale& with) {
  normalize_any<Set>(out, in, n, with);
}
template <class Set>
MNEME_INLINE void convert_to_float_body(float* __restrict out, const std::uint8_t* __restrict in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = static_cast<float>(in[i]);
}

/// exp(z) for z <= 0, with an error of about 1 ulp; 0 below -87. Cody-Waite reduction and the Cephes polynomial
/// (Moshier). The library function is not used, because it is not vectorized and its bits differ between machines.
MNEME_INLINE float exp_of(float z) {
  constexpr float magic = 12582912.0F; // 1.5 * 2^23; adding it rounds z to an integer in the low bits
  const float shifted = z * 1.44269504F + magic;
  const float n = shifted - magic;
  const float r = (z - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  const float y = p * r * r + r + 1.0F;
  const auto exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(magic) + 127U;
  const float power = std::bit_cast<float>(exponent << 23U);
  return z < -87.0F ? 0.0F : y * power;
}

MNEME_INLINE void cross_entropy_of(double& value, const cross_entropy_rows& in, const std::int64_t classes) {
  float* const __restrict d = in.d_logits;
  for (std::int64_t row = 0; row < in.rows; ++row) {
    const float* const z = in.logits + row * classes;
    float top = z[0];
    for (std::int64_t c = 1; c < classes; ++c)
      top = z[c] > top ? z[c] : top;
    for (std::int64_t c = 0; c < classes; ++c)
      d[row * classes + c] = z[c] - top;
  }
  // One pass over all rows, because short rows would leave most lanes unused. After subtraction of the maximum, z <= 0.
  double sum_of_losses = 0.0;
  for (std::int64_t row = 0; row < in.rows; ++row)
    if (in.weight[row] != 0.0F)
      sum_of_losses -= static_cast<double>(in.weight[row]) * d[row * classes + in.labels[row]];
  for (std::int64_t i = 0; i < in.rows * classes; ++i)
    d[i] = exp_of(d[i]);
  // Sums of exponentials, each in [1, classes], are multiplied for rows with equal weights, so that one logarithm
  // serves many rows.
  constexpr double product_max = 1e200;
  double product = 1.0;
  float weight_of_product = 0.0F;
  for (std::int64_t row = 0; row < in.rows; ++row) {
    float* const p = d + row * classes;
    const float weight = in.weight[row];
    if (weight == 0.0F) { // a padded row has no gradient, whatever its logits are
      for (std::int64_t c = 0; c < classes; ++c)
        p[c] = 0.0F;
      continue;
    }
    float sum = 0.0F;
    for (std::int64_t c = 0; c < classes; ++c)
      sum += p[c];
    const float factor = weight / sum;
    for (std::int64_t c = 0; c < classes; ++c)
      p[c] *= factor;
    p[in.labels[row]] -= weight;
    if (weight != weight_of_product || !(product < product_max)) {
      sum_of_losses += static_cast<double>(weight_of_product) * std::log(product);
      product = 1.0;
      weight_of_product = weight;
    }
    product *= static_cast<double>(sum);
  }
  value = sum_of_losses + static_cast<double>(weight_of_product) * std::log(product);
}

/// Many experiments have ten classes per task. If this row length is a compile-time constant, the kernel takes half the
/// time and gives the same bits.
template <class Set>
MNEME_INLINE void cross_entropy_body(double& value, const cross_entropy_rows& in) {
  constexpr std::int64_t usual = 10;
  if (in.classes == usual)
    cross_entropy_of(value, in, usual);
  else
    cross_entropy_of(value, in, in.classes);
}

/// Adds the term of label smoothing s to a cross-entropy: s (z_label - mean z), which is s times the difference of
/// -mean_c log p_c and -log p_label.
void add_label_smoothing(double& value, const cross_entropy_rows& in) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    if (in.weight[row] == 0.0F)
      continue;
    const float* const z = in.logits + row * in.classes;
    float* const d = in.d_logits + row * in.classes;
    const double weight = static_cast<double>(in.weight[row]) * in.smoothing, classes = static_cast<double>(in.classes);
    double sum = 0.0;
    for (std::int64_t c = 0; c < in.classes; ++c)
      sum += z[c];
    value += weight * (z[in.labels[row]] - sum / classes);
    for (std::int64_t c = 0; c < in.classes; ++c)
      d[c] -= static_cast<float>(weight / classes);
    d[in.labels[row]] += static_cast<float>(weight);
  }
}

MNEME_KERNEL(normalize_bytes, (float* out, const std::uint8_t* in, std::int64_t n, const pixel_scale& with),
             (out, in, n, with))
MNEME_KERNEL(normalize_floats, (float* out, const float* in, std::int64_t n, const pixel_scale& with),
             (out, in, n, with))
MNEME_KERNEL(relu, (float* x, std::int64_t n), (x, n))
MNEME_KERNEL(relu_backward, (float* d, const float* y, std::int64_t n), (d, y, n))
MNEME_KERNEL(add, (float* out, const float* a, const float* b, std::int64_t n, bool relu), (out, a, b, n, relu))
MNEME_KERNEL(scale, (float* x, std::int64_t n, float factor), (x, n, factor))
MNEME_KERNEL(add_proximal_gradient, (float* g, const float* w, const float* start, std::int64_t n, float factor),
             (g, w, start, n, factor))
MNEME_KERNEL(sum_rows, (const row_sums& sums), (sums))
MNEME_KERNEL(add_squares, (double& total, const float* x, std::int64_t n), (total, x, n))
MNEME_KERNEL(add_products, (double& total, const float* a, const float* b, std::int64_t n), (total, a, b, n))
MNEME_KERNEL(add_square_distance, (double& total, const float* a, const float* b, std::int64_t n), (total, a, b, n))
MNEME_KERNEL(check_finite, (bool& finite, const float* x, std::int64_t n), (finite, x, n))
MNEME_KERNEL(sgd, (float* w, const float* g, float* v, std::int64_t n, const sgd_step& with), (w, g, v, n, with))
MNEME_KERNEL(adam, (float* w, const float* g, float* m, float* v, std::int64_t n, const adam_step& with),
             (w, g, m, v, n, with))
MNEME_KERNEL(convert_to_float, (float* out, const std::uint8_t* in, std::int64_t n), (out, in, n))
MNEME_KERNEL(cross_entropy, (double& value, const cross_entropy_rows& in), (value, in))

} // namespace

void normalize(float* out, const std::uint8_t* in, std::int64_t n, const pixel_scale& with) {
  best_normalize_bytes(out, in, n, with);
}
void normalize(float* out, const float* in, std::int64_t n, const pixel_scale& with) {
  best_normalize_floats(out, in, n, with);
}
void relu(float* x, std::int64_t n) { best_relu(x, n); }
void relu_backward(float* d, const float* y, std::int64_t n) { best_relu_backward(d, y, n); }
void add(float* out, const float* a, const float* b, std::int64_t n, bool relu) { best_add(out, a, b, n, relu); }
void scale(float* x, std::int64_t n, float factor) { best_scale(x, n, factor); }
void add_proximal_gradient(float* g, const float* w, const float* start, std::int64_t n, float factor) {
  best_add_proximal_gradient(g, w, start, n, factor);
}
void sum_rows(const row_sums& sums) { best_sum_rows(sums); }
void add_squares(double& total, const float* x, std::int64_t n) { best_add_squares(total, x, n); }
void add_products(double& total, const float* a, const float* b, std::int64_t n) { best_add_products(total, a, b, n); }
void add_square_distance(double& total, const float* a, const float* b, std::int64_t n) {
  best_add_square_distance(total, a, b, n);
}
void check_finite(bool& finite, const float* x, std::int64_t n) { best_check_finite(finite, x, n); }
void sgd(float* w, const float* g, float* v, std::int64_t n, const sgd_step& with) { best_sgd(w, g, v, n, with); }
void adam(float* w, const float* g, float* m, float* v, std::int64_t n, const adam_step& with) {
  best_adam(w, g, m, v, n, with);
}
void convert_to_float(float* out, const std::uint8_t* in, std::int64_t n) { best_convert_to_float(out, in, n); }
void cross_entropy_of_rows(double& value, const cross_entropy_rows& in) {
  best_cross_entropy(value, in);
  if (in.smoothing != 0.0)
    add_label_smoothing(value, in);
}

} // namespace mneme::kernels
