/// activities: what a client may be at work on, as a table. A further activity is a further row.
#pragma once
#include "runtime/base/rng.hpp"
#include "runtime/federation/federation_settings.hpp"
#include "runtime/method/server_half.hpp"
#include <array>
namespace mneme {

enum class activity_id : std::uint8_t {
  round, ///< A client of the cohort takes part.
  look,  ///< A client outside the cohort looks at its rows.
};

struct activity {
  const char* begins_event; ///< A client is given it, in events.csv.
  const char* ends_event;   ///< It is over without an upload; null: it ends with one.
  bool looks;               ///< The client's half runs strategy::client_look.
  /// How many of the clients outside the cohort have it in a round, and the stream that draws them; null: the cohort's.
  std::int64_t task_plan::*clients;
  purpose drawn_by;
  /// Its download, and its jobs, take time; null: they do.
  bool federation_settings::*costs;

  /// Its client sends something to the parties, can drop out, and can be late: without it nobody waits for anything.
  [[nodiscard]] constexpr bool uploads() const noexcept { return ends_event == nullptr; }
  [[nodiscard]] bool is_free(const federation_settings& settings) const { return costs && !(settings.*costs); }
};

/// By activity_id.
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
