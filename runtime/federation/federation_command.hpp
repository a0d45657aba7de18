/// federation_command: commands of the federation. Commands for one receiver arrive in the order in which they were
/// given.
#pragma once
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/wave.hpp"
#include <variant>
namespace mneme {

/// Lets other inputs be handled before the federation continues.
struct pause {};

using federation_command = std::variant<
    // to a shard: answered by wave reports, except abandon
    start_rounds, release, abandon,
    // to the server: answered by the reply of the step
    open_task, open_round, evaluate,
    // to the named party: answered likewise; deliveries only if they request it
    deliveries, take_step, save_state, restore_state,
    // to the recorder; keep_state is answered once it is on disk
    evaluation_record, recorded_events, run_warning, progress_snapshot, keep_model, keep_state,
    // to the scheduler: call continue_events() after the pending inputs
    pause,
    // to the caller that started the run: the run has ended
    run_report>;

} // namespace mneme
