/// cohort: draws the clients of a round, uniformly without replacement from the available ones.
#pragma once
#include "runtime/base/rng.hpp"
#include <functional>
namespace mneme {

/// Draws `size` clients from 0 .. clients - 1, ascending; returns all available ones if they are fewer. Large
/// populations use rejection, in O(size) if most clients are available.
[[nodiscard]] std::vector<client_id> draw_cohort(const rng_key& stream, std::int64_t clients, std::int64_t size,
                                                 const std::function<bool(client_id)>& available);

} // namespace mneme
