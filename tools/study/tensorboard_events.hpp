/// tensorboard_events: a run as an event file, which TensorBoard reads.
#pragma once
#include "runtime/results/metrics.hpp"
#include <string>
#include <vector>
namespace mneme {

/// The bytes of an event file: for each evaluation accuracy (in total, and task by task), loss, forgetting, clients and
/// traffic, at the step of its round (from 1). Its time is virtual time, in seconds since 1970, so that TensorBoard's
/// relative axis shows it. Equal evaluations give equal bytes.
[[nodiscard]] std::string tensorboard_events(const std::vector<evaluation_record>& evaluations);

/// TensorBoard takes files of such names for event files.
inline constexpr const char* tensorboard_file = "events.out.tfevents.0.mneme";

} // namespace mneme
