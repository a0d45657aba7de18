/// server_links: the server's uplink and downlink, when concurrent transfers share them.
#pragma once
#include "runtime/federation/run_clock.hpp"
#include "runtime/federation/shared_link.hpp"
namespace mneme {

/// Does nothing if no link is shared. During a transfer, the event queue has the next change of a link instead of an
/// event of the transfer's assignment.
class server_links {
public:
  /// All arguments must outlive this object.
  server_links(const federation_settings& settings, run_clock& clock)
      : settings_(settings),
        clock_(clock), links_{shared_link(settings.clients->devices().server_mbit(link_direction::up)),
                              shared_link(settings.clients->devices().server_mbit(link_direction::down))} {}

  /// True if transfers in this direction share the server's link.
  [[nodiscard]] bool share(link_direction direction) const noexcept {
    return settings_.clients->devices().server_mbit(direction) > 0.0;
  }
  /// Starts a transfer now. @pre share(direction)
  void begin(link_direction direction, const assignment_in_flight& owner, std::int64_t bytes);
  /// Cancels the transfers of these assignments, so that the remaining transfers get higher rates.
  void abandon(const std::vector<assignment_id>& ids);

  struct ended_transfer {
    link_direction direction{};
    assignment_id owner{};
  };
  /// Advances the links to the current time. Returns the ended transfers, uploads first. Transfers of one direction are
  /// in the order of their starts.
  [[nodiscard]] std::vector<ended_transfer> take_ended();

  void persist(archive& state);
  /// True if every loaded transfer belongs to an assignment in flight.
  [[nodiscard]] bool is_valid(in_flight_table& in_flight) const;

private:
  [[nodiscard]] shared_link& link(link_direction direction) { return links_[static_cast<std::size_t>(direction)]; }
  void expect_change();

  const federation_settings& settings_;
  run_clock& clock_;
  std::array<shared_link, 2> links_; // indexed by direction
  virtual_time expected_at_ = never; // time of the earliest link event in the queue
};

} // namespace mneme
