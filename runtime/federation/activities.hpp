/// activities: table of the kinds of work that a client can do, one row per kind.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/federation/federation_settings.hpp"
#include "runtime/method/server_half.hpp"
#include <array>
namespace mneme {

enum class activity_id : std::uint8_t {
  round,   ///< A client of the cohort trains and uploads.
  observe, ///< A client outside the cohort observes its rows.
};

struct activity {
  const char* begins_event; ///< Name of the dispatch event in events.csv.
  const char* ends_event;   ///< Name of the end event in events.csv; null if the activity ends with an upload.
  bool observes;            ///< True: runs strategy::client_observe. False: runs strategy::client_round.
  /// Member of task_plan that holds the number of clients outside the cohort that do this activity in each round. Null
  /// for activities of the cohort.
  std::int64_t task_plan::*clients;
  purpose drawn_by;
  /// Setting that decides whether the activity's download and jobs take virtual time. Null: they always do.
  bool federation_settings::*costs;

  /// True if the activity ends with an upload. Only then can the client drop out or be late. No round waits for
  /// activities without an upload.
  [[nodiscard]] constexpr bool uploads() const noexcept { return ends_event == nullptr; }
  [[nodiscard]] bool is_free(const federation_settings& settings) const { return costs && !(settings.*costs); }
};

/// All activities, indexed by activity_id.
inline constexpr std::array activities{
    activity{.begins_event = "dispatch",
             .ends_event = nullptr,
             .observes = false,
             .clients = nullptr,
             .drawn_by = purpose::cohort,
             .costs = nullptr},
    activity{.begins_event = "observe",
             .ends_event = "observed",
             .observes = true,
             .clients = &task_plan::observers,
             .drawn_by = purpose::observers,
             .costs = &federation_settings::observers_cost_time},
};

/// The table row of an activity.
[[nodiscard]] constexpr const activity& row_of(activity_id kind) noexcept {
  return activities[static_cast<std::size_t>(kind)];
}

} // namespace mneme
