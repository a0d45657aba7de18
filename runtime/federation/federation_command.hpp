/// federation_command: what the federation wants done. Commands for one peer reach it in the order in which they are
/// given.
#pragma once
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/wave.hpp"
#include <variant>
namespace mneme {

/// Other inputs get their turn before the federation goes on.
struct pause {};

using federation_command = std::variant<
    // a shard: each is answered by wave reports, but for abandon
    start_rounds, release, abandon,
    // the server: each is answered by what its step is answered with
    open_task, open_round, evaluate,
    // the party that it names, in the same way; deliveries only where they say so
    deliveries, take_step, save_state, restore_state,
    // the recorder; keep_state is answered once it is on the disk
    evaluation_record, recorded_events, run_warning, progress_snapshot, keep_model, keep_state,
    // whoever carries messages: continue_events() is called after the inputs that wait
    pause,
    // whoever began the run: it is over
    run_report>;

} // namespace mneme
