#include "runtime/kernels/gaussian_pixels.hpp"
#include "runtime/kernels/instruction_set.hpp"
#include <bit>
#include <cmath>
#include <numbers>
namespace mneme::kernels {
namespace {

constexpr int lanes = 16;     // number of Philox blocks computed together; each gives two normal numbers
constexpr double near = 1e-6; // error bound of the computed 128.5 + 32 * (mean + z)

template <int Lanes>
struct longs {
  typedef std::uint64_t type __attribute__((vector_size(Lanes * sizeof(std::uint64_t))));
};

/// Words of `lanes` blocks. Each word is stored in the lower half of 64 bits, because the product of two words needs 64
/// bits.
struct blocks {
  std::uint64_t word[4][lanes];
};

/// Blocks first .. first + lanes - 1 of the stream (Philox4x32-10, as in rng.cpp).
template <class Set>
MNEME_INLINE void make_blocks(blocks& out, std::uint64_t first, const stream_name& name) {
  constexpr int width = Set::lanes / 2; // loops over single vectors of 64-bit lanes, because g++ 12 otherwise emits
                                        // scalar code
  using vector = typename longs<width>::type;
  constexpr std::uint64_t low = 0xFFFFFFFFU;
  for (int part = 0; part < lanes; part += width) {
    vector number;
    for (int i = 0; i < width; ++i)
      number[i] = first + static_cast<std::uint64_t>(part + i);
    vector c0 = number & low, c1 = number >> 32U, c2 = vector{} + name.high[0], c3 = vector{} + name.high[1];
    std::uint32_t key0 = name.key[0], key1 = name.key[1];
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9U, key1 += 0xBB67AE85U) {
      const vector a = c0 * std::uint64_t{0xD2511F53U}, b = c2 * std::uint64_t{0xCD9E8D57U};
      c0 = (b >> 32U) ^ c1 ^ std::uint64_t{key0};
      c1 = b & low;
      c2 = (a >> 32U) ^ c3 ^ std::uint64_t{key1};
      c3 = a & low;
    }
    __builtin_memcpy(out.word[0] + part, &c0, sizeof c0);
    __builtin_memcpy(out.word[1] + part, &c1, sizeof c1);
    __builtin_memcpy(out.word[2] + part, &c2, sizeof c2);
    __builtin_memcpy(out.word[3] + part, &c3, sizeof c3);
  }
}

/// Converts an integer below 2^52 exactly.
MNEME_INLINE double whole(std::uint64_t x) { return std::bit_cast<double>(0x4330000000000000U | x) - 0x1p52; }

/// Computes exactly the value of rng_stream::uniform() for these two words.
MNEME_INLINE double uniform_of(std::uint64_t low, std::uint64_t high) {
  return whole(high) * 0x1p-32 + whole(low >> 11U) * 0x1p-53;
}

/// log(x) for 2^-53 <= x <= 1: x = 2^e m with m near 1, and log m = 2 artanh((m - 1) / (m + 1)).
MNEME_INLINE double log_of(double x) {
  constexpr std::uint64_t single = 0x3FF0000000000000U, root_half = 0x3FE6A09E667F3BCDU;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t exponent = (bits + (single - root_half)) >> 52U; // e plus the bias 1023
  const auto m = std::bit_cast<double>(bits + single - (exponent << 52U));
  const double f = (m - 1.0) / (m + 1.0), s = f * f; // |f| <= 0.172
  const double series =
      1.0 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * (1.0 / 13))))));
  return (whole(exponent) - 1023.0) * std::numbers::ln2 + 2.0 * f * series;
}

struct turn {
  double cosine, sine;
};

/// Sine and cosine of the angle 2 pi u, 0 <= u < 1: Taylor series around the nearest multiple of a quarter turn.
MNEME_INLINE turn turn_of(double u) {
  constexpr double magic = 0x1.8p52; // adding it rounds to an integer, kept in the low bits
  const double shifted = 4.0 * u + magic;
  const auto quarter = std::bit_cast<std::uint64_t>(shifted);
  const double r = (u - 0.25 * (shifted - magic)) * (2.0 * std::numbers::pi), s = r * r; // |r| <= pi / 4
  const double sine =
      r * (1.0 + s * (-1.0 / 6 + s * (1.0 / 120 + s * (-1.0 / 5040 + s * (1.0 / 362880 - s * (1.0 / 39916800))))));
  const double cosine =
      1.0 +
      s * (-0.5 + s * (1.0 / 24 + s * (-1.0 / 720 + s * (1.0 / 40320 + s * (-1.0 / 3628800 + s * (1.0 / 479001600))))));
  const bool swapped = (quarter & 1U) != 0;
  const double along = swapped ? sine : cosine, across = swapped ? cosine : sine;
  const std::uint64_t flip_cosine = ((quarter + 1) & 2U) << 62U, flip_sine = (quarter & 2U) << 62U;
  return {.cosine = std::bit_cast<double>(std::bit_cast<std::uint64_t>(along) ^ flip_cosine),
          .sine = std::bit_cast<double>(std::bit_cast<std::uint64_t>(across) ^ flip_sine)};
}

/// Box-Muller pairs, in the order of rng_stream::normal().
MNEME_INLINE void make_normals(double* __restrict out, const blocks& in) {
  for (int i = 0; i < lanes; ++i) {
    const double radius = std::sqrt(-2.0 * log_of(1.0 - uniform_of(in.word[0][i], in.word[1][i])));
    const auto [cosine, sine] = turn_of(uniform_of(in.word[2][i], in.word[3][i]));
    out[2 * i] = radius * cosine;
    out[2 * i + 1] = radius * sine;
  }
}

/// Writes `count` pixels. Returns false if a value is so close to an integer that its floor is uncertain.
MNEME_INLINE bool put_pixels(std::uint8_t* __restrict out, const float* __restrict mean, const double* __restrict noise,
                             int count) {
  constexpr double magic = 0x1.8p52;
  int doubtful = 0;
  for (int i = 0; i < count; ++i) {
    const double value = 128.5 + 32.0 * (static_cast<double>(mean[i]) + noise[i]);
    const double away = value - ((value + magic) - magic);
    doubtful |= (away < near ? 1 : 0) & (away > -near ? 1 : 0);
    const double low = value < 0.0 ? 0.0 : value;
    out[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(low > 255.0 ? 255.0 : low));
  }
  return doubtful == 0;
}

template <class Set>
MNEME_INLINE void pixels_body(bool& certain, std::uint8_t* pixels, const float* mean, std::int64_t n,
                              const stream_name& name) {
  blocks drawn;
  double noise[2 * lanes];
  for (std::int64_t first = 0; first < n; first += 2 * lanes) {
    make_blocks<Set>(drawn, static_cast<std::uint64_t>(first / 2), name);
    make_normals(noise, drawn);
    const bool whole_run = n - first >= 2 * lanes; // true in all runs but the last: the length is then a compile-time
                                                   // constant
    certain &= whole_run ? put_pixels(pixels + first, mean + first, noise, 2 * lanes)
                         : put_pixels(pixels + first, mean + first, noise, static_cast<int>(n - first));
  }
}

MNEME_KERNEL(pixels, (bool& certain, std::uint8_t* pixels, const float* mean, std::int64_t n, const stream_name& name),
             (certain, pixels, mean, n, name))

} // namespace

bool gaussian_pixels(std::span<std::uint8_t> pixels, const float* mean, const stream_name& name) {
  bool certain = true;
  best_pixels(certain, pixels.data(), mean, static_cast<std::int64_t>(pixels.size()), name);
  return certain;
}

} // namespace mneme::kernels
