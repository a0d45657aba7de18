/// client_work: advances a client's work in virtual time, stage by stage, until all its messages have arrived.
#pragma once
#include "runtime/federation/delivery_buffer.hpp"
#include "runtime/federation/dispatcher.hpp"
namespace mneme {

class client_work {
public:
  /// All arguments must outlive this object.
  client_work(const federation_settings& settings, run_clock& clock, current_round& round, wave_scheduler& waves,
              dispatcher& dispatch, in_flight_table& in_flight, server_links& links, run_output& out)
      : settings_(settings), clock_(clock), round_(round), waves_(waves), dispatch_(dispatch), in_flight_(in_flight),
        links_(links), out_(out) {}

  // Each function returns true if the client's work has ended and `owner` is no longer in flight.
  /// Handles the end of the download or of a stage: starts the next stage or the upload.
  [[nodiscard]] bool stage_over(assignment_in_flight& owner);
  /// Handles the arrival of one of the client's messages at a party.
  [[nodiscard]] bool arrive(assignment_in_flight& owner, party_id where);

  /// Reschedules arrivals after the rates of a shared server link have changed.
  void links_changed();

  // -- uploads to the server
  /// Sends buffered uploads to the server.
  void flush_deliveries();
  void on_uploads_folded() { deliveries_.on_uploads_folded(); }
  /// True if virtual time must wait until the server has folded the uploads that were sent to it.
  [[nodiscard]] bool waits_for_server() const noexcept { return deliveries_.waits_for_server(); }

private:
  /// Arrival of one part of a client's result at the receiving party.
  struct party_arrival {
    virtual_time at{};
    party_id where{};
    auto operator<=>(const party_arrival&) const = default;
  };
  void start_drop_out(assignment_in_flight& owner);
  void start_upload(assignment_in_flight& owner);
  void schedule_arrival(assignment_in_flight& owner, party_arrival before);
  void deliver(assignment_in_flight& owner);
  void end_without_upload(assignment_in_flight& owner);
  [[nodiscard]] delivery delivery_of(assignment_in_flight& owner, party_id to) const;

  const federation_settings& settings_;
  run_clock& clock_;
  current_round& round_;
  wave_scheduler& waves_;
  dispatcher& dispatch_;
  in_flight_table& in_flight_;
  server_links& links_;
  run_output& out_;
  delivery_buffer deliveries_;
};

} // namespace mneme
