/// device_speeds: computes the speed of each device profile of a scenario for the run's net.
#pragma once
#include "runtime/models/model.hpp"
#include "runtime/population/population.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {

/// The run's net and the shape of its rows.
struct net_summary {
  const model& net;
  std::array<std::int64_t, 3> shape{}; ///< C, H, W.
  std::int64_t classes = 0;
};

/// Returns one speed per entry of devices.profiles. A profile may list measured speeds of the net, for a number of
/// parameters and a batch size. Otherwise the speed follows from the profile's operations per second by the roofline
/// model (Williams, Waterman and Patterson 2009, section 3): a step takes its computing time or its memory time
/// (work_of_pass, working_set), whichever is larger. Fails for a profile with neither measured speeds nor operations
/// per second, and for a device with too little memory for a step.
[[nodiscard]] expected<std::vector<device_speed>> device_speeds_of(const scenario& from, const net_summary& at_work);

} // namespace mneme
