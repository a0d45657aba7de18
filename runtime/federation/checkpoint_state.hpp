/// checkpoint_state: how values that know nothing of checkpoints are saved in one.
#pragma once
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/server_steps.hpp"
namespace mneme {

void persist(archive& file, class_range& classes);
void persist(archive& file, round_place& place);
void persist(archive& file, task_plan& plan);
void persist(archive& file, broadcast& sent);
void persist(archive& file, client_result& result);
void persist(archive& file, run_report& report);

} // namespace mneme
