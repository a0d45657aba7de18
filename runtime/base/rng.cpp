#include "runtime/base/rng.hpp"
#include "runtime/base/check.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
namespace mneme {
namespace {

using words4 = std::array<std::uint32_t, 4>;
using words2 = std::array<std::uint32_t, 2>;

constexpr std::uint32_t low_half(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high_half(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// 128-bit digest of all fields of a key: two blocks of Philox, chained as in CBC-MAC. Philox is a permutation, so keys
/// that differ only in one half of the fields cannot collide.
words4 digest(const rng_key& key) {
  const words2 fixed{0x6d6e656d, 0x652d6b65}; // arbitrary constant; separates mneme's streams from plain Philox
  words4 state = philox4x32({low_half(key.seed), high_half(key.seed), key.purpose, key.client.value}, fixed);
  state[0] ^= key.task.value;
  state[1] ^= key.visit;
  state[2] ^= low_half(key.index);
  state[3] ^= high_half(key.index);
  return philox4x32(state, fixed);
}

} // namespace

// Salmon, Moraes, Dror, Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
words4 philox4x32(words4 counter, words2 key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {high_half(b) ^ counter[1] ^ key[0], low_half(b), high_half(a) ^ counter[3] ^ key[1], low_half(a)};
    key[0] += 0x9E3779B9; // Weyl constants: golden ratio and sqrt(3) - 1
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Half of the digest is the Philox key; the other half is the upper counter words. The lower words count blocks.
stream_name stream_name_of(const rng_key& key) {
  const words4 name = digest(key);
  return {.key = {name[0], name[1]}, .high = {name[2], name[3]}};
}

rng_stream::rng_stream(const rng_key& key) {
  const auto name = stream_name_of(key);
  key_ = name.key;
  counter_ = {0, 0, name.high[0], name.high[1]};
}

void rng_stream::refill() {
  block_ = philox4x32(counter_, key_);
  if (++counter_[0] == 0)
    ++counter_[1];
  used_ = 0;
}

std::uint32_t rng_stream::bits32() {
  if (used_ == block_.size())
    refill();
  return block_[used_++];
}

std::uint64_t rng_stream::bits64() {
  const std::uint64_t low = bits32();
  return low | std::uint64_t{bits32()} << 32;
}

double rng_stream::uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }

double rng_stream::uniform(double low, double high) { return low + (high - low) * uniform(); }

// Lemire (2019), "Fast random integer generation in an interval", for bounds below 2^32. Larger bounds use masked
// rejection.
std::uint64_t rng_stream::below(std::uint64_t bound) {
  MNEME_CHECK(bound > 0, bound);
  if (bound <= 0xFFFFFFFF) {
    const auto small = static_cast<std::uint32_t>(bound);
    std::uint64_t product = std::uint64_t{bits32()} * small;
    if (low_half(product) < small)
      for (const std::uint32_t bias = (0U - small) % small; low_half(product) < bias;)
        product = std::uint64_t{bits32()} * small;
    return high_half(product);
  }
  std::uint64_t mask = bound - 1;
  for (int shift = 1; shift < 64; shift *= 2)
    mask |= mask >> shift;
  for (;;)
    if (const auto drawn = bits64() & mask; drawn < bound)
      return drawn;
}

double rng_stream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform())); // avoids log(0): 1 - u is in (0, 1]
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double rng_stream::exponential(double mean) {
  MNEME_CHECK(mean > 0, mean);
  return -mean * std::log(1.0 - uniform());
}

// Marsaglia and Tsang (2000), "A simple method for generating gamma variables", section 2, for shapes of at least 1.
// For smaller shapes, gamma(a) = gamma(a + 1) * U^(1/a) (section 6).
double rng_stream::gamma(double shape) {
  MNEME_CHECK(shape > 0 && std::isfinite(shape), shape);
  if (shape < 1.0)
    return std::exp(log_gamma_variate(shape));
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0)
      continue;
    const double v = root * root * root;
    const double u = 1.0 - uniform();
    if (u < 1.0 - 0.0331 * x * x * x * x || std::log(u) < 0.5 * x * x + d * (1.0 - v + std::log(v)))
      return d * v;
  }
}

double rng_stream::log_gamma_variate(double shape) {
  MNEME_CHECK(shape > 0 && std::isfinite(shape), shape);
  if (shape >= 1.0)
    return std::log(gamma(shape));
  const double boosted = std::log(gamma(shape + 1.0));
  return std::max(std::numeric_limits<double>::lowest(), boosted + std::log(1.0 - uniform()) / shape);
}

std::vector<double> rng_stream::dirichlet(std::size_t n, double beta) {
  MNEME_CHECK(n > 0, n);
  std::vector<double> shares(n); // holds the logs of gamma variates at first, because the variates underflow for small
                                 // beta
  std::generate(shares.begin(), shares.end(), [&] { return log_gamma_variate(beta); });
  const double largest = *std::max_element(shares.begin(), shares.end());
  double sum = 0.0;
  for (double& share : shares)
    sum += share = std::exp(share - largest);
  for (double& share : shares)
    share /= sum;
  return shares;
}

} // namespace mneme
