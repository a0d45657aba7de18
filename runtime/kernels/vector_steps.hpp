/// vector_steps: loops over vectors, and the exponential function, for elementwise kernels.
#pragma once
#include "runtime/kernels/instruction_set.hpp"
namespace mneme::kernels {

template <int Lanes>
struct integers {
  typedef std::int32_t type __attribute__((vector_size(Lanes * sizeof(std::int32_t))));
};

/// x = e^x for x <= 0, with a relative error of at most 1e-7; e^-87 below -87. NaN stays NaN.
template <int Lanes>
MNEME_INLINE void exp_nonpositive(typename floats<Lanes>::type& x) {
  using vec = typename floats<Lanes>::type;
  using whole = typename integers<Lanes>::type;
  constexpr float lowest = -87.0F, log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F; // ln2_high has few digits, so n * ln2_high is
                                                                      // exact
  constexpr float rounder = 12582912.0F;                              // 1.5 * 2^23; adding it rounds to an integer
  x = x < lowest ? vec{} + lowest : x;
  const vec shifted = x * log2_e + rounder, n = shifted - rounder;
  const vec r = (x - n * ln2_high) - n * ln2_low; // r is in [-ln 2 / 2, ln 2 / 2]
  vec y = r * 0.00139464466F + 0.00836915169F;    // minimax polynomial of (e^r - 1 - r) / r^2
  y = y * r + 0.0416662631F;
  y = y * r + 0.166665160F;
  y = y * r + 0.500000008F;
  y = y * r * r + r + 1.0F;
  const whole power = ((whole)shifted - 0x4B400000 + 127) << 23; // 2^n, made from its exponent
  x = y * (vec)power;
}

/// Writes step(vectors of the `Inputs` arrays) to `out`, vector by vector; the last vector is padded with zeros.
template <int Lanes, int Inputs, class Step>
MNEME_INLINE void for_vectors(float* out, const float* const (&in)[Inputs], std::int64_t n, const Step& step) {
  using vec = typename floats<Lanes>::type;
  vec x[Inputs], y;
  std::int64_t i = 0;
  for (; i + Lanes <= n; i += Lanes) {
    for (int j = 0; j < Inputs; ++j)
      load(x[j], in[j] + i);
    step.template operator()<Lanes>(y, x);
    store(out + i, y);
  }
  if (i == n)
    return;
  float tail[Lanes];
  for (int j = 0; j < Inputs; ++j) {
    for (std::int64_t k = 0; k < Lanes; ++k)
      tail[k] = i + k < n ? in[j][i + k] : 0.0F;
    load(x[j], tail);
  }
  step.template operator()<Lanes>(y, x);
  store(tail, y);
  for (std::int64_t k = 0; i + k < n; ++k)
    out[i + k] = tail[k];
}

} // namespace mneme::kernels
