/// cohort: the clients of a round, drawn uniformly without replacement among those who are available.
#pragma once
#include "runtime/base/rng.hpp"
#include <functional>
namespace mneme {

/// `size` clients out of 0 .. clients - 1, ascending; all available ones if they are fewer.
/// Large populations are drawn from by rejection, in O(wanted) where most clients are available.
[[nodiscard]] std::vector<client_id> draw_cohort(const rng_key& stream, std::int64_t clients, std::int64_t size,
                                                 const std::function<bool(client_id)>& available);

} // namespace mneme
