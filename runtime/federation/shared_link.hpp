/// shared_link: transfers that compete for one link, in virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Every transfer gets an equal part of the link's rate, but no more than its own link takes, and what one leaves goes
/// to the others (max-min fairness; Bertsekas and Gallager 1992, section 6.5.2). Rates hold until a transfer begins or
/// ends, or its own link changes. Each change costs n log n of the n transfers under way. No state of it depends on
/// more than the order of what happens in virtual time.
class shared_link {
public:
  struct moving {
    assignment_id owner{};
    client_id client{};
    double bits_left = 0.0;
    double own_mbit = 0.0;          ///< Its own link's; may be infinite.
    virtual_time own_until = never; ///< Its own link changes then.
    double mbit = 0.0;              ///< Its part; follows from the others.
    virtual_time ends_at = never;   ///< The same.
    void persist(archive& state) { state(owner)(client)(bits_left)(own_mbit)(own_until); }
  };

  /// @param mbit that all transfers have together
  explicit shared_link(double mbit) : mbit_(mbit) {}

  /// Brings all transfers up to a time. @pre now is not before the last
  void move_to(virtual_time now);
  /// @pre moved to the present
  void add(moving begun);
  void erase(assignment_id owner);
  /// Those that are over, in the order in which they began. @pre moved to the present
  [[nodiscard]] std::vector<moving> take_ended();
  /// Asks for what own links do now where that was known up to now only. @pre moved to the present
  void renew(const population& clients, link_direction direction);
  /// When a transfer ends or an own link changes; end_of_runs if none ever does, never if there are none.
  [[nodiscard]] virtual_time next_change() const;
  [[nodiscard]] const std::vector<moving>& transfers() const noexcept { return transfers_; }

  void persist(archive& state);

private:
  void share();

  double mbit_;
  virtual_time at_{};
  std::vector<moving> transfers_; // in the order in which they began
};

} // namespace mneme
