/// evicted_results: decides which early results stay in memory and which are evicted and recomputed.
#pragma once
#include "runtime/federation/in_flight_table.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Rounds are often computed long before their uploads arrive. Results beyond the budget are evicted. They are
/// recomputed from their assignments when they arrive in virtual time; a round is a pure function.
class evicted_results {
public:
  /// @param bytes_max budget for uploads that have not arrived yet
  evicted_results(std::int64_t bytes_max, bool results_are_repeatable)
      : bytes_max_(bytes_max), results_are_repeatable_(results_are_repeatable) {}

  /// Adds the result of an assignment to, or removes it from, the bytes in memory.
  void added(const assignment_in_flight& owner) { held_bytes_ += bytes_of(owner); }
  void removed(const assignment_in_flight& owner) { held_bytes_ -= bytes_of(owner); }

  /// True if the result fits the budget for deliveries while a wave is out.
  [[nodiscard]] bool has_room_during_wave(const assignment_in_flight& owner) const noexcept {
    return wave_delivered_bytes_ + bytes_of(owner) <= bytes_max_;
  }
  /// Counts the result, with its parts for other parties, as if it had stayed in memory until the wave ended.
  void delivered_during_wave(const assignment_in_flight& owner) { wave_delivered_bytes_ += bytes_of(owner); }

  /// Called when a wave has ended: keeps the results that arrive first, and evicts the rest beyond the budget. Returns
  /// whether any result was evicted.
  bool evict(in_flight_table& table, const population& clients);
  /// Results to recompute now: that of `top`, and those that arrive next, within the budget.
  [[nodiscard]] std::vector<assignment_id> to_recompute(assignment_id top, in_flight_table& table,
                                                        const population& clients) const;

private:
  [[nodiscard]] static std::int64_t bytes_of(const assignment_in_flight& owner) { return sum_of(owner.sends); }

  std::int64_t bytes_max_;
  bool results_are_repeatable_; // false if a recomputed result could differ
  std::int64_t held_bytes_ = 0;
  std::int64_t wave_delivered_bytes_ = 0;
};

} // namespace mneme
