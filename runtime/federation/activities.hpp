/// activities: table of the kinds of work that a client can do. A new kind of work is a new row.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/federation/federation_settings.hpp"
#include "runtime/method/server_half.hpp"
#include <array>
namespace mneme {

enum class activity_id : std::uint8_t {
  round, ///< A client of the cohort takes part.
  look,  ///< A client outside the cohort observes its rows.
};

struct activity {
  const char* begins_event; ///< Event at the dispatch, in events.csv.
  const char* ends_event;   ///< Event at the end if there is no upload; null: it ends with an upload.
  bool looks;               ///< Runs strategy::client_look instead of client_round.
  /// Member with the number of clients outside the cohort that do it in a round. Null: the cohort does it.
  std::int64_t task_plan::*clients;
  purpose drawn_by;
  /// Setting that says whether its download and jobs take virtual time. Null: they always do.
  bool federation_settings::*costs;

  /// True if its client uploads, can drop out and can be late. Otherwise no round waits for it.
  [[nodiscard]] constexpr bool uploads() const noexcept { return ends_event == nullptr; }
  [[nodiscard]] bool is_free(const federation_settings& settings) const { return costs && !(settings.*costs); }
};

/// Indexed by activity_id.
inline constexpr std::array activities{
    activity{.begins_event = "dispatch",
             .ends_event = nullptr,
             .looks = false,
             .clients = nullptr,
             .drawn_by = purpose::cohort,
             .costs = nullptr},
    activity{.begins_event = "observe",
             .ends_event = "looked",
             .looks = true,
             .clients = &task_plan::observers,
             .drawn_by = purpose::observers,
             .costs = &federation_settings::observing_costs},
};

[[nodiscard]] constexpr const activity& row_of(activity_id kind) noexcept {
  return activities[static_cast<std::size_t>(kind)];
}

} // namespace mneme
