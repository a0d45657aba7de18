/// device_speeds: what the profiles of a scenario say of the run's net: how long its jobs take on each kind of device.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/population/population.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

/// The net of a run and what a row of it is.
struct net_at_work {
  const model& net;
  std::array<std::int64_t, 3> shape{}; ///< C, H, W
  std::int64_t classes = 0;
};

/// One for each of devices.profiles. A profile names the net with its number of parameters and the batch, or states
/// operations a second: then a step of B rows takes the longer of its products' time and its memory's, by the net's own
/// count (work_of_pass, working_set), as Williams, Waterman and Patterson (2009, section 3) bound it. Fails for
/// profiles that do neither, and for devices whose memory is too small for a step.
[[nodiscard]] expected<std::vector<device_speed>> device_speeds_of(const scenario& from, const net_at_work& at_work);

} // namespace mneme
