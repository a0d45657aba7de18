/// federation_command: commands of the federation. A receiver gets its commands in the order in which they were issued.
#pragma once
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/wave.hpp"
#include <variant>
namespace mneme {

/// Lets the caller handle other inputs before the federation continues.
struct pause {};

using federation_command = std::variant<
    // to a shard, which answers with wave reports; abandon has no answer
    start_rounds, release, abandon,
    // to the server, which answers with the reply of the step
    open_task, open_round, evaluate,
    // to the named party, which answers each; deliveries are acknowledged only on request
    deliveries, take_step, save_state, restore_state,
    // to the recorder, which acknowledges save_checkpoint once the checkpoint is on disk
    evaluation_record, recorded_events, run_warning, progress_snapshot, save_task_model, save_checkpoint,
    // to the scheduler, which calls continue_events() after the pending inputs
    pause,
    // to the caller that started the run; nothing follows
    run_report>;

} // namespace mneme
