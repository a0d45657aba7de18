/// evicted_results: decides which results computed ahead stay in memory, and which are evicted and recomputed later.
#pragma once
#include "runtime/federation/in_flight_table.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Rounds are often computed long before their uploads arrive in virtual time. Results beyond the budget are evicted,
/// and recomputed from their assignments when their uploads arrive. This is exact, since a client's round is a pure
/// function.
class evicted_results {
public:
  /// @param bytes_max limit in bytes for uploads that have not arrived yet
  evicted_results(std::int64_t bytes_max, bool results_are_repeatable)
      : bytes_max_(bytes_max), results_are_repeatable_(results_are_repeatable) {}

  /// added() adds the size of an assignment's result to the total in memory; removed() subtracts it.
  void added(const assignment_in_flight& owner) { held_bytes_ += bytes_of(owner); }
  void removed(const assignment_in_flight& owner) { held_bytes_ -= bytes_of(owner); }

  /// True if the result fits the budget for deliveries during a wave.
  [[nodiscard]] bool has_room_during_wave(const assignment_in_flight& owner) const noexcept {
    return wave_delivered_bytes_ + bytes_of(owner) <= bytes_max_;
  }
  /// Counts a delivered result, with its parts for other parties, as if it stayed in memory until the end of the wave.
  void delivered_during_wave(const assignment_in_flight& owner) { wave_delivered_bytes_ += bytes_of(owner); }

  /// Call at the end of a wave. Keeps the results that arrive first, and evicts the others beyond the budget. Returns
  /// whether any result was evicted.
  bool evict(in_flight_table& table, const population& clients);
  /// Chooses the evicted results to recompute now: the result of `top` and, within the budget, the results that arrive
  /// next.
  [[nodiscard]] std::vector<assignment_id> to_recompute(assignment_id top, in_flight_table& table,
                                                        const population& clients) const;

private:
  [[nodiscard]] static std::int64_t bytes_of(const assignment_in_flight& owner) { return sum_of(owner.sends); }

  std::int64_t bytes_max_;
  bool results_are_repeatable_; // false if the bits of a recomputed result could differ
  std::int64_t held_bytes_ = 0;
  std::int64_t wave_delivered_bytes_ = 0;
};

} // namespace mneme
