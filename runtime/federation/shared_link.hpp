/// shared_link: concurrent transfers over one link in virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/population/population.hpp"
namespace mneme {

/// Max-min fairness (Bertsekas and Gallager 1992, section 6.5.2): each transfer gets an equal part of the link's rate,
/// limited by the rate of the client's own link. The rate that a limited transfer leaves unused is shared by the other
/// transfers. Rates stay constant until a transfer starts or ends, or a client's own link changes. A change costs O(n
/// log n) for n transfers. The state depends only on the order of events in virtual time.
class shared_link {
public:
  struct active_transfer {
    assignment_id owner{};
    client_id client{};
    double bits_left = 0.0;
    double client_mbit = 0.0;               ///< Rate of the client's own link in Mbit/s; may be infinite.
    virtual_time client_rate_until = never; ///< Time at which the client's own link changes.
    double mbit = 0.0;                      ///< Current rate in Mbit/s, computed from all transfers.
    virtual_time ends_at = never;           ///< Time at which the transfer ends if its rate does not change.
    void persist(archive& state) { state(owner)(client)(bits_left)(client_mbit)(client_rate_until); }
  };

  /// @param mbit total rate of the link in Mbit/s
  explicit shared_link(double mbit) : mbit_(mbit) {}

  /// Advances all transfers to `now`. @pre now is not before the last call
  void move_to(virtual_time now);
  /// Starts a transfer. @pre move_to(the current time) was called
  void add(active_transfer begun);
  /// Cancels the assignment's transfer; the others share its rate. No effect if the assignment has no transfer.
  void erase(assignment_id owner);
  /// Removes and returns ended transfers in starting order. @pre move_to(the current time) was called
  [[nodiscard]] std::vector<active_transfer> take_ended();
  /// Updates clients' own rates that were valid only until now. @pre move_to(the current time) was called
  void renew(const population& clients, link_direction direction);
  /// Time at which the next transfer ends or a client's own rate changes. Returns `end_of_runs` if neither will happen,
  /// and `never` if there are no transfers.
  [[nodiscard]] virtual_time next_change() const;
  [[nodiscard]] const std::vector<active_transfer>& transfers() const noexcept { return transfers_; }

  void persist(archive& state);

private:
  void share();

  double mbit_;
  virtual_time at_{};
  std::vector<active_transfer> transfers_; // in the order of their starts
};

} // namespace mneme
