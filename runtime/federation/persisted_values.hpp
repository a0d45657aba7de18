/// persisted_values: persist() functions of message types, for checkpoints.
#pragma once
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_report.hpp"
namespace mneme {

void persist(archive& state, class_range& classes);
void persist(archive& state, round_info& info);
void persist(archive& state, task_plan& plan);
void persist(archive& state, broadcast& sent);
void persist(archive& state, client_result& result);
void persist(archive& state, run_report& report);

} // namespace mneme
