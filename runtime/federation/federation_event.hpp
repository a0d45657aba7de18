/// federation_event: events of virtual time.
#pragma once
#include "runtime/base/archive.hpp"
#include "runtime/base/virtual_clock.hpp"
#include "runtime/federation/parties.hpp"
namespace mneme {

struct federation_event {
  enum class kind : std::uint8_t {
    stage_over,  ///< A stage of a client's round ends; the first stage is the download.
    arrival,     ///< A client's message reaches a party.
    drop_out,    ///< A client disappears while it works.
    deadline,    ///< Deadline of a round.
    churn,       ///< Clients enrol, leave or change task.
    link_change, ///< Transfers on a shared server link end or change their rate.
  };
  static constexpr auto last_kind = kind::link_change;
  kind event_kind = kind::stage_over;
  party_id where{};           ///< arrival
  round_id round{};           ///< deadline
  assignment_id assignment{}; ///< stage_over, arrival, drop_out
  /// Scenario keys that decide its time.
  [[nodiscard]] const char* deciding_keys() const;
  void persist(archive& state) {
    state(event_kind)(where)(assignment)(round);
    if (event_kind > last_kind || index_of(where) >= parties.size())
      throw archive_error("has an event of a kind, or at a party, that there is not");
  }
};

} // namespace mneme
