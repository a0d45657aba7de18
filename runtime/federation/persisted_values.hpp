/// persisted_values: how values that know nothing of checkpoints are saved in one.
#pragma once
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/server_steps.hpp"
namespace mneme {

void persist(archive& state, class_range& classes);
void persist(archive& state, round_place& place);
void persist(archive& state, task_plan& plan);
void persist(archive& state, broadcast& sent);
void persist(archive& state, client_result& result);
void persist(archive& state, run_report& report);

} // namespace mneme
