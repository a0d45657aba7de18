/// rng: counter-based random streams (Philox4x32-10; Salmon et al. 2011) and distributions. Equal keys give equal
/// numbers, in any order and on any number of threads.
#pragma once
#include "runtime/base/ids.hpp"
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
namespace mneme {

/// Purposes of the engine's random streams. Purposes of methods begin at `first_method_purpose`.
enum class purpose : std::uint32_t {
  initial_weights,
  class_order,
  partition,
  pixel_transform,
  synthetic_data, // drawn once per run or task
  cohort,
  device_speed,
  device_uplink,
  device_downlink,
  drop_out,
  sampled_rows, // drawn by the population
  shuffle,
  augmentation,
  dropout_mask, // drawn inside a training job
  vector_noise, // drawn inside a training job
  enrolment,
  reachability,
  transition,
  vanishing, // drawn by the population, over time
  observers,
  staying,
  device_proxy_uplink,
  device_proxy_downlink, // drawn by the population, with a proxy
  public_rows,           // drawn once per task, for the split
  scored_batches,        // batches of the test set, for summary.json
  device_profile,
  uplink_jitter,
  downlink_jitter, // drawn by the population, with device profiles
  held_out_rows,   // drawn once per client and task, for evaluation.personal
};
inline constexpr std::uint32_t first_method_purpose = 0x10000;

/// Key that identifies one random stream.
struct rng_key {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0; ///< A `purpose`, or a number of the method from `first_method_purpose` on.
  client_id client{};
  task_id task{};
  std::uint32_t visit = 0; ///< Number of earlier assignments of this client. Drop-outs thus do not affect the draws of
                           ///< other clients.
  std::uint64_t index = 0; ///< Index within the purpose, such as an epoch, class or round.
  bool operator==(const rng_key&) const = default;
};
/// Returns `base` with an engine purpose: `key_for({seed}, purpose::shuffle)`.
[[nodiscard]] inline rng_key key_for(rng_key base, purpose purpose_id) {
  base.purpose = static_cast<std::uint32_t>(purpose_id);
  return base;
}

/// Philox state of a stream. Block b of the stream is philox4x32({b as two words, high}, key).
struct stream_name {
  std::array<std::uint32_t, 2> key{}, high{};
};
/// The stream of a key. Different keys give independent streams.
[[nodiscard]] stream_name stream_name_of(const rng_key& key);

/// One random stream: a key and a counter, cheap to create. Integers are equal on all platforms. Real numbers may
/// differ in the last digit if the math library differs.
class rng_stream {
public:
  explicit rng_stream(const rng_key& key);

  /// Returns the next 32 uniformly random bits. bits64() returns 64.
  [[nodiscard]] std::uint32_t bits32();
  [[nodiscard]] std::uint64_t bits64();
  /// A uniform number in [0, 1) with 53 bits.
  [[nodiscard]] double uniform();
  /// A uniform number in [low, high).
  [[nodiscard]] double uniform(double low, double high);
  /// A uniform integer in {0, ..., bound - 1}, without bias. @pre bound > 0
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  /// A standard normal number (Box-Muller).
  [[nodiscard]] double normal();
  /// An exponential number with the given mean. @pre mean > 0
  [[nodiscard]] double exponential(double mean);
  /// A gamma number of scale 1 (Marsaglia and Tsang 2000; their section 6 for shapes below 1). @pre shape > 0
  [[nodiscard]] double gamma(double shape);
  /// The log of a gamma number. It is finite even if the number underflows, for shapes down to 1e-4.
  [[nodiscard]] double log_gamma_variate(double shape);
  /// A draw from the symmetric Dirichlet distribution: `n` shares with sum 1. Never NaN, however small `beta` is.
  [[nodiscard]] std::vector<double> dirichlet(std::size_t n, double beta);

  /// Shuffles in place (Fisher-Yates, from the end).
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  void refill(); // computes the next block

  std::array<std::uint32_t, 2> key_{};
  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t used_ = 4;
  bool has_spare_ = false; // second number of a Box-Muller pair
  double spare_ = 0.0;
};

/// One block of Philox4x32-10, on which all streams are based. Public for known-answer tests.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

} // namespace mneme
