/// update_steps: clipping, noise and compression of one client's update, as pure functions.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/settings/scenario.hpp"
#include <span>
#include <vector>
namespace mneme {

// Axis: n entries of an update.

/// L2 norm, summed in order.
[[nodiscard]] double l2_norm(std::span<const double> update);
/// update *= min(1, bound / |update|) (FlatClip of McMahan et al. 2018, "Learning Differentially Private Recurrent
/// Language Models"). @pre bound > 0
void clip_update(std::span<double> update, double bound);
/// Adds factor * z_i, where z_i is the i-th normal() of the stream of `key`.
void add_gaussian(std::span<double> update, double factor, const rng_key& key);

/// Number of entries that top_k keeps: ceil(share * n), at least 1 of n > 0.
[[nodiscard]] std::int64_t kept_entries(double share, std::int64_t n);
/// Sets all entries to 0 except the `count` entries of largest magnitude. Of equal magnitudes, keeps the one with the
/// lower index.
void keep_largest(std::span<double> update, std::int64_t count);
/// Rounds each entry to a multiple of max |x| / (2^(bits-1) - 1), which is a float32. nearest: rounds half to even.
/// stochastic: floor(x / step + u), where u is uniform in [0, 1), so that the mean is x (Alistarh et al. 2017, QSGD,
/// section 3.1, with the maximum in place of the L2 norm). Zeros stay 0 and draw no random number.
/// @pre bits >= 2 @param key key of the random stream from which u is drawn
void quantise_update(std::span<double> update, std::int64_t bits, rounding_kind rounding, const rng_key& key);

} // namespace mneme
