/// federation_event: the kinds of events in virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
namespace mneme {

struct federation_event {
  enum class kind : std::uint8_t {
    stage_over,  ///< A stage of a client's round ends; the first stage is the download.
    arrival,     ///< A client's message arrives at a party.
    drop_out,    ///< A client drops out while it works.
    deadline,    ///< The deadline of a round.
    churn,       ///< Clients enroll, leave, or change task or availability.
    link_change, ///< Transfers on a shared server link end or change their rate.
  };
  static constexpr auto last_kind = kind::link_change;
  kind event_kind = kind::stage_over;
  party_id where{};           ///< For arrival: the receiving party.
  round_id round{};           ///< For deadline: the round that it belongs to.
  assignment_id assignment{}; ///< For stage_over, arrival and drop_out: the assignment.
  /// Names of the scenario keys that determine the event's time, for error messages.
  [[nodiscard]] const char* related_keys() const;
  void persist(archive& state) {
    state(event_kind)(where)(assignment)(round);
    if (event_kind > last_kind || index_of(where) >= parties.size())
      throw archive_error("has an event of an unknown kind or at an unknown party");
  }
};

} // namespace mneme
