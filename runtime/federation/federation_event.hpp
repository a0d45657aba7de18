/// federation_event: what can happen in virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
namespace mneme {

struct federation_event {
  enum class kind : std::uint8_t {
    stage_over,    ///< The present stage of a client's round is over; the first one is its download.
    arrival,       ///< What a client sends to a party reaches it.
    drop_out,      ///< A client vanishes at work.
    deadline,      ///< A round's deadline has come.
    churn,         ///< Clients come, go, or change task by themselves.
    link_change,   ///< Transfers that share a link of the server end, or go on at another rate.
  };
  static constexpr auto last_kind = kind::link_change;
  kind event_kind = kind::stage_over;
  party_id where{};           ///< arrival
  round_id round{};           ///< deadline
  assignment_id assignment{}; ///< stage_over, arrival, drop_out
  /// The keys of a scenario that decide when it happens.
  [[nodiscard]] const char* deciding_keys() const;
  void persist(archive& state) {
    state(event_kind)(where)(assignment)(round);
    if (event_kind > last_kind || index_of(where) >= parties.size())
      throw archive_error("has an event of a kind, or at a party, that there is not");
  }
};

} // namespace mneme
