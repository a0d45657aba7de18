/// evicted_results: which results that wait for their virtual time are kept in memory, and which are computed again.
#pragma once
#include "runtime/federation/in_flight_table.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// A client's round is often computed long before its upload arrives. What there is no room for is evicted, and
/// computed again from its assignment when its time has come: a round is a pure function.
class evicted_results {
public:
  /// @param bytes_max of uploads that wait for their time
  evicted_results(std::int64_t bytes_max, bool results_are_repeatable)
      : bytes_max_(bytes_max), results_are_repeatable_(results_are_repeatable) {}

  /// The assignment has its result from now on, or has it no more.
  void added(const assignment_in_flight& owner) { held_bytes_ += bytes_of(owner); }
  void removed(const assignment_in_flight& owner) { held_bytes_ -= bytes_of(owner); }

  /// The result may be delivered while a wave is out.
  [[nodiscard]] bool has_room_during_wave(const assignment_in_flight& owner) const noexcept {
    return wave_delivered_bytes_ + bytes_of(owner) <= bytes_max_;
  }
  /// It counts when the wave ends as if it had waited until then, with its parts for other parties.
  void delivered_during_wave(const assignment_in_flight& owner) { wave_delivered_bytes_ += bytes_of(owner); }

  /// A wave has ended: what arrives first is kept, and the rest is evicted as far as there is no room. Returns whether
  /// anything had to be.
  bool evict(in_flight_table& table, const population& clients);
  /// What is computed again now: `top`, and those that arrive next as far as there is room.
  [[nodiscard]] std::vector<assignment_id> to_recompute(assignment_id top, in_flight_table& table,
                                                        const population& clients) const;

private:
  [[nodiscard]] static std::int64_t bytes_of(const assignment_in_flight& owner) {
    return sum_of(owner.sends);
  }

  std::int64_t bytes_max_;
  bool results_are_repeatable_; // else a second result might be another
  std::int64_t held_bytes_ = 0;
  std::int64_t wave_delivered_bytes_ = 0;
};

} // namespace mneme
