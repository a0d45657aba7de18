/// Randomness is a key: counter-based streams (Philox4x32-10; Salmon et al. 2011) and our own
/// distributions, so that equal keys give equal numbers in any order and on any number of threads.
#pragma once
#include "runtime/base/ids.hpp"
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
namespace mneme {

/// Purposes of the engine's streams. A method's own purposes start at `first_method_purpose`.
enum class purpose : std::uint32_t {
  initial_weights,
  class_order,
  partition,
  pixel_transform,
  synthetic_data, // once per run or task
  cohort,
  device_speed,
  device_uplink,
  device_downlink,
  drop_out,
  sampled_rows, // the population
  shuffle,
  augmentation,
  dropout_mask, // inside a training job
  vector_noise, // the same
  enrolment,
  reachability,
  transition,
  vanishing, // the population over time
  observers,
  staying,
  device_proxy_uplink,
  device_proxy_downlink, // the population with a proxy
  public_rows,           // once per task: the split
  scored_batches,        // of the test set, in summary.json
  device_profile,
  uplink_jitter,
  downlink_jitter, // the population with profiles
};
inline constexpr std::uint32_t first_method_purpose = 0x10000;

/// Key of one random stream.
struct rng_key {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0; ///< A `purpose`, or one of the method, from `first_method_purpose`.
  client_id client{};
  task_id task{};
  std::uint32_t visit = 0; ///< Earlier assignments of this client, so that drop-outs do not affect other clients.
  std::uint64_t index = 0; ///< Distinguishes further: an epoch, a class, a round.
  bool operator==(const rng_key&) const = default;
};
/// For engine purposes: `key_for({seed}, purpose::shuffle)`.
[[nodiscard]] inline rng_key key_for(rng_key base, purpose purpose_id) {
  base.purpose = static_cast<std::uint32_t>(purpose_id);
  return base;
}

/// Philox state of a stream: its block b is philox4x32({b as two words, high}, key).
struct stream_name {
  std::array<std::uint32_t, 2> key{}, high{};
};
[[nodiscard]] stream_name stream_name_of(const rng_key& key);

/// One stream. It consists of a key and a counter, so create it where it is needed. Integers are equal on every
/// platform; reals too, except for the last digit if the mathematical library differs.
class rng_stream {
public:
  explicit rng_stream(const rng_key& key);

  /// The next 32, or 64, uniform bits.
  [[nodiscard]] std::uint32_t bits32();
  [[nodiscard]] std::uint64_t bits64();
  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform();
  /// Uniform in [low, high).
  [[nodiscard]] double uniform(double low, double high);
  /// Uniform in {0, ..., bound - 1}, without bias. @pre bound > 0
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box-Muller).
  [[nodiscard]] double normal();
  /// Exponential with the given mean. @pre mean > 0
  [[nodiscard]] double exponential(double mean);
  /// Gamma of scale 1 (Marsaglia and Tsang 2000; shapes below 1 by their boost). @pre shape > 0
  [[nodiscard]] double gamma(double shape);
  /// Log of a gamma variate: finite where the variate itself underflows (shapes down to 1e-4).
  [[nodiscard]] double log_gamma_variate(double shape);
  /// One draw of the symmetric Dirichlet: `n` shares that sum to 1; never NaN, however small beta is.
  [[nodiscard]] std::vector<double> dirichlet(std::size_t n, double beta);

  /// Fisher-Yates from the end.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  void refill(); // the next block

  std::array<std::uint32_t, 2> key_{};
  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
  bool has_spare_ = false; // the second half of a Box-Muller pair
  double spare_ = 0.0;
};

/// One block of Philox4x32-10: the function the streams are made of (known-answer tests use it).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

} // namespace mneme
