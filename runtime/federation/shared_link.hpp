/// shared_link: transfers that share one link in virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Max-min fairness (Bertsekas and Gallager 1992, section 6.5.2): each transfer gets an equal part of the link's rate,
/// at most the rate of its own link; unused rate is shared by the others. Rates hold until a transfer starts or ends,
/// or its own link changes. A change costs n log n for n transfers. State depends only on the order of events in
/// virtual time.
class shared_link {
public:
  struct moving {
    assignment_id owner{};
    client_id client{};
    double bits_left = 0.0;
    double own_mbit = 0.0;          ///< Of the client's own link; may be infinite.
    virtual_time own_until = never; ///< Time at which its own link changes.
    double mbit = 0.0;              ///< Its current rate; derived from all transfers.
    virtual_time ends_at = never;   ///< Derived in the same way.
    void persist(archive& state) { state(owner)(client)(bits_left)(own_mbit)(own_until); }
  };

  /// @param mbit total rate of all transfers
  explicit shared_link(double mbit) : mbit_(mbit) {}

  /// Advances all transfers to `now`. @pre now is not before the last call
  void move_to(virtual_time now);
  /// @pre advanced to the current time
  void add(moving begun);
  void erase(assignment_id owner);
  /// Removes and returns ended transfers, in the order in which they started. @pre advanced to the current time
  [[nodiscard]] std::vector<moving> take_ended();
  /// Updates rates of own links that were known only up to now. @pre advanced to the current time
  void renew(const population& clients, link_direction direction);
  /// Time at which a transfer ends or an own link changes: end_of_runs if neither happens, never if there are no
  /// transfers.
  [[nodiscard]] virtual_time next_change() const;
  [[nodiscard]] const std::vector<moving>& transfers() const noexcept { return transfers_; }

  void persist(archive& state);

private:
  void share();

  double mbit_;
  virtual_time at_{};
  std::vector<moving> transfers_; // in the order in which they started
};

} // namespace mneme
