/// All typed actor interfaces, in the order of a round.
#pragma once
#include "actors/protocol/messages.hpp"
#include <caf/result.hpp>
#include <caf/typed_actor.hpp>
namespace mneme {

/// Owns virtual time: event queue, links, rounds and the memories of all clients.
using scheduler_actor = caf::typed_actor<
    // Runs the federation to its end. A failure is a report that names client, round and job.
    caf::result<run_report>(run_request),
    // Ends the run after the current event.
    caf::result<void>(stop_run),
    // Report of a shard on rounds that it started or jobs that it ran.
    caf::result<void>(wave_report)>;

/// Receives the wave reports of all shards.
using report_taker_actor = caf::typed_actor<
    // Report of a shard.
    caf::result<void>(wave_report)>;

/// Hosts shards, or forwards messages to their hosts.
using shard_host_actor = caf::typed_actor<
    // Starts rounds of a shard. Answered by wave_reports; the last one is marked.
    caf::result<void>(start_rounds),
    // Runs exactly these batches. Answered likewise.
    caf::result<void>(release),
    // Discards rounds that were started and have not finished.
    caf::result<void>(abandon)>;

/// Routes messages between the scheduler and the hosts of shards, if a run has nodes.
using placement_actor = caf::typed_actor<
    // For the shard, forwarded to its host.
    caf::result<void>(start_rounds),
    // For the shard, forwarded likewise.
    caf::result<void>(release),
    // For the shard, forwarded likewise.
    caf::result<void>(abandon),
    // Report of a shard that the run's own process hosts.
    caf::result<void>(wave_report),
    // Message of a node, not parsed yet.
    caf::result<void>(node_frame),
    // A node has joined, wants to leave, or is lost.
    caf::result<void>(node_change),
    // Outcome of a sampled round in the run's own process.
    caf::result<void>(replay_report),
    // Timer: checks lost and reconnected nodes. Sent to itself.
    caf::result<void>(look_after_nodes),
    // Keeps polling because more messages are expected. Sent to itself.
    caf::result<void>(look_for_frames)>;

/// Carries messages between the run and the workers of a node.
using uplink_actor = caf::typed_actor<
    // The workers. First message.
    caf::result<void>(worker_peers),
    // From a worker, for the run.
    caf::result<void>(wave_report),
    // From the run, for a worker, not parsed yet.
    caf::result<void>(node_frame),
    // Timer: wakes workers after results have been sent. Sent to itself.
    caf::result<void>(look_after_nodes)>;

/// Hosts the half of the method that a party runs (runtime/federation/parties.hpp).
using party_actor = caf::typed_actor<
    // Uploads of clients, in virtual order.
    caf::result<void>(deliveries),
    // Step at the end of a round. Returns the model or the advice.
    caf::result<step_taken>(take_step),
    // Returns the summary metrics of the half; the server also the named tensors of its predictor.
    caf::result<learnt>(save_model),
    // Appends the state of the half to a checkpoint. Shared tensors are saved once.
    caf::result<saved_state>(save_state),
    // Restores the state of the half. Returns the rest of the checkpoint.
    caf::result<restored_state>(restore_state),
    // A worker has run one of its jobs.
    caf::result<void>(batch_done)>;

/// The party that opens tasks and rounds and whose predictor is evaluated.
using server_actor = party_actor::extend<
    // Opens a task. Returns the plan for it.
    caf::result<task_plan>(open_task),
    // Opens a round. Returns the broadcast, as clients receive it, and its bytes.
    caf::result<opened_round>(open_round),
    // Returns accuracy and loss on the test rows of each opened task.
    caf::result<evaluated>(evaluate),
    // Returns deciles over clients of the accuracy on rows like their own, after the last task.
    caf::result<fairness>(measure_fairness)>;

/// Hosts one round of one client and ends with it. Starts when it is spawned. After each stage and at the end it sends
/// a round_answer to the worker that hosts its shard.
using client_actor = caf::typed_actor<
    // Resumes the round with results.
    caf::result<void>(job_outcomes)>;

/// Hosts shards and runs batches; no other actor computes. It has one executor and one thread.
using worker_actor = caf::typed_actor<
    // The other actors. First message.
    caf::result<void>(worker_peers),
    // Starts rounds of a shard. Answered by wave_reports; the last one is marked.
    caf::result<void>(start_rounds),
    // A client has reached its next stage or its end.
    caf::result<void>(round_answer),
    // Runs exactly these batches. Answered likewise.
    caf::result<void>(release),
    // Runs the next ready batch, and repeats until there is none.
    caf::result<void>(next_batch),
    // Another worker has run a batch of a shard of this worker.
    caf::result<void>(batch_done),
    // Discards rounds that were started and have not finished.
    caf::result<void>(abandon)>;

/// Writes the files of a run and shows its progress. A failure to write is an error.
using recorder_actor = caf::typed_actor<
    // An evaluation: a line of metrics.jsonl; at the end of a task also a row of the matrix.
    caf::result<void>(evaluation_record),
    // Lines of events.csv.
    caf::result<void>(recorded_events),
    // Printed for the user.
    caf::result<void>(run_warning),
    // Progress of the run.
    caf::result<void>(progress_snapshot),
    // Progress of a long program of a worker.
    caf::result<void>(program_progress),
    // Model at the end of a task, for models/task_N.safetensors.
    caf::result<void>(keep_model),
    // Final predictor, for model.safetensors, and summary metrics of the method.
    caf::result<void>(learnt),
    // Writes summary.json and returns it.
    caf::result<run_summary>(finish_run),
    // Adds its own state to a checkpoint. Returns when the checkpoint is on disk.
    caf::result<void>(keep_state)>;

/// Actors with which workers exchange messages. A node has only workers and the actor that carries reports.
struct worker_peers {
  report_taker_actor scheduler{};     ///< Receiver of reports.
  std::vector<party_actor> parties{}; ///< Indexed by party_id; null if the method has no such party.
  recorder_actor recorder{};
  std::vector<worker_actor> workers{}; ///< All workers, by number.
};

/// Writes checkpoints on a thread of its own, because it waits for the disk.
using checkpoint_writer_actor = caf::typed_actor<
    // Returns when the checkpoint is on disk. On an error all earlier checkpoints are complete.
    caf::result<void>(write_checkpoint)>;

} // namespace mneme
