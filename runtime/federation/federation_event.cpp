#include "runtime/federation/federation_event.hpp"
namespace mneme {

const char* federation_event::related_keys() const {
  switch (event_kind) {
  case kind::stage_over:
    return "devices.rows_per_second, devices.downlink_mbit and devices.latency";
  case kind::arrival:
    return row_of(where).upload_keys;
  case kind::drop_out:
    return "devices.rows_per_second";
  case kind::deadline:
    return "rounds.deadline";
  case kind::link_change:
    return "devices.server_uplink_mbit, devices.server_downlink_mbit and devices.link_file";
  case kind::churn:
    break;
  }
  return "devices.availability, tasks.transition_spread and the times of [enrolment]";
}

} // namespace mneme
