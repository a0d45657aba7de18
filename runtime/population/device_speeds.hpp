/// device_speeds: duration of the run's jobs on each device profile of a scenario.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/population/population.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

/// The net of a run and the shape of its rows.
struct net_at_work {
  const model& net;
  std::array<std::int64_t, 3> shape{}; ///< C, H, W
  std::int64_t classes = 0;
};

/// Returns one speed per entry of devices.profiles. A profile lists the net with its number of parameters and batch, or
/// gives operations per second; then a step of B rows takes the longer of its products' time and its memory's time
/// (work_of_pass, working_set), as in the roofline model (Williams, Waterman and Patterson 2009, section 3). Fails for
/// profiles with neither, and for devices with too little memory for a step.
[[nodiscard]] expected<std::vector<device_speed>> device_speeds_of(const scenario& from, const net_at_work& at_work);

} // namespace mneme
