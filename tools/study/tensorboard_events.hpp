/// tensorboard_events: writes a run as a TensorBoard event file.
#pragma once
#include "runtime/results/metrics.hpp"
#include <string>
#include <vector>
namespace mneme {

/// Returns an event file with accuracy (total and per task), loss, forgetting, clients and traffic of each evaluation.
/// The step of an event is the round, from 1. Event times are virtual seconds since 1970, so that TensorBoard's
/// relative axis shows virtual time. Equal evaluations give equal bytes.
[[nodiscard]] std::string tensorboard_events(const std::vector<evaluation_record>& evaluations);

/// File name that TensorBoard recognizes.
inline constexpr const char* tensorboard_file = "events.out.tfevents.0.mneme";

} // namespace mneme
