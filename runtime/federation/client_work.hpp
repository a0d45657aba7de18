/// client_work: a client's work in virtual time, stage by stage, until all that it sends has arrived.
#pragma once
#include "runtime/federation/delivery_buffer.hpp"
#include "runtime/federation/dispatcher.hpp"
namespace mneme {

class client_work {
public:
  /// All outlive this.
  client_work(const federation_settings& settings, run_clock& clock, current_round& round, computing_ahead& ahead,
              dispatcher& dispatch, in_flight_table& in_flight, server_links& links, run_output& out)
      : settings_(settings), clock_(clock), round_(round), ahead_(ahead), dispatch_(dispatch), in_flight_(in_flight),
        links_(links), out_(out) {}

  // Each returns whether the client has ended its work: then `owner` is in flight no more.
  /// Its download or a stage is over: the next stage's time runs, or what it sends is on its way.
  [[nodiscard]] bool stage_over(assignment_in_flight& owner);
  /// What it sends has arrived at a party.
  [[nodiscard]] bool arrive(assignment_in_flight& owner, party_id where);

  /// Transfers that share a link of the server have come further.
  void links_changed();

  // -- uploads on their way to the server
  /// Uploads that wait for others go to the server.
  void hand_over_deliveries();
  void folded() { deliveries_.folded(); }
  /// Virtual time waits until the server has folded what it was given.
  [[nodiscard]] bool waits_for_server() const noexcept { return deliveries_.waits_for_server(); }

private:
  /// When a part of what a client sends is at its party.
  struct party_arrival {
    virtual_time at{};
    party_id where{};
    auto operator<=>(const party_arrival&) const = default;
  };
  void begin_to_drop_out(assignment_in_flight& owner);
  void send_off(assignment_in_flight& owner);
  void expect_arrival(assignment_in_flight& owner, party_arrival before);
  void deliver(assignment_in_flight& owner);
  void end_without_upload(assignment_in_flight& owner);
  [[nodiscard]] delivery delivery_of(assignment_in_flight& owner, party_id to) const;

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  computing_ahead& ahead_;
  dispatcher& dispatch_;
  in_flight_table& in_flight_;
  server_links& links_;
  run_output& out_;
  delivery_buffer deliveries_;
};

} // namespace mneme
