/// server_links: the links of the server, where all downloads, or all uploads, share them.
#pragma once
#include "runtime/federation/run_clock.hpp"
#include "runtime/federation/shared_link.hpp"
namespace mneme {

/// Costs nothing where no link is shared. While a transfer is under way its assignment has no event in the queue.
class server_links {
public:
  /// All outlive this.
  server_links(const federation_settings& settings, run_clock& clock)
      : settings_(settings),
        clock_(clock), links_{shared_link(settings.clients->devices().server_mbit(link_direction::up)),
                              shared_link(settings.clients->devices().server_mbit(link_direction::down))} {}

  [[nodiscard]] bool share(link_direction direction) const noexcept {
    return settings_.clients->devices().server_mbit(direction) > 0.0;
  }
  /// A transfer of so many bytes begins now. @pre share(direction)
  void begin(link_direction direction, const assignment_in_flight& owner, std::int64_t bytes);
  /// What they send or receive is dropped, and others have more of the link.
  void abandon(const std::vector<assignment_id>& ids);

  struct ended_transfer {
    link_direction direction{};
    assignment_id owner{};
  };
  /// Brings the links up to now. Returns the transfers that are over, uploads first, each kind in the order in which
  /// they began.
  [[nodiscard]] std::vector<ended_transfer> take_ended();

  void persist(archive& state);
  /// What was loaded are transfers of assignments in flight.
  [[nodiscard]] bool is_sound(in_flight_table& in_flight) const;

private:
  [[nodiscard]] shared_link& link(link_direction direction) { return links_[static_cast<std::size_t>(direction)]; }
  void expect_change();

  const federation_settings& settings_;
  run_clock& clock_;
  std::array<shared_link, 2> links_; // by direction
  virtual_time expected_at_ = never; // of the earliest event in the queue that waits for a change
};

} // namespace mneme
