/// cohort: draws the clients of a round uniformly, without replacement.
#pragma once
#include "runtime/base/rng.hpp"
#include <functional>
namespace mneme {

/// Draws `size` available clients with ids from 0 to clients - 1, or all of them if there are fewer. Returns ascending
/// ids. Large populations use rejection, which takes O(size) if most clients are available.
[[nodiscard]] std::vector<client_id> draw_cohort(const rng_key& stream, std::int64_t clients, std::int64_t size,
                                                 const std::function<bool(client_id)>& available);

} // namespace mneme
