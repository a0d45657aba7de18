/// interfaces: all typed actor interfaces, in the order of a round.
#pragma once
#include "actors/protocol/messages.hpp"
#include <caf/result.hpp>
#include <caf/typed_actor.hpp>
namespace mneme {

/// Owns virtual time: event queue, links, rounds, and the memories of all clients.
using scheduler_actor = caf::typed_actor<
    // Runs the federation to its end. The report of a failed run names client, round and job.
    caf::result<run_report>(run_request),
    // Ends the run after the current event.
    caf::result<void>(stop_run),
    // Receives a shard's report on rounds that it started or jobs that it ran.
    caf::result<void>(wave_report)>;

/// Receives the wave reports of all shards.
using report_sink_actor = caf::typed_actor<
    // Receives the report of a shard.
    caf::result<void>(wave_report)>;

/// Hosts shards, or forwards messages to their hosts.
using shard_host_actor = caf::typed_actor<
    // Starts rounds of a shard. The replies are wave_reports; the last one is marked.
    caf::result<void>(start_rounds),
    // Runs exactly these batches. The replies are wave_reports; the last one is marked.
    caf::result<void>(release),
    // Discards rounds that were started and have not finished.
    caf::result<void>(abandon)>;

/// Routes messages between the scheduler and the hosts of shards, in runs that accept nodes.
using placement_actor = caf::typed_actor<
    // Forwards the message to the host of the shard.
    caf::result<void>(start_rounds),
    // Forwards the message to the host of the shard.
    caf::result<void>(release),
    // Forwards the message to the host of the shard.
    caf::result<void>(abandon),
    // Receives the report of a shard that the run's own process hosts.
    caf::result<void>(wave_report),
    // Receives a message of a node, not parsed yet.
    caf::result<void>(node_frame),
    // Handles a node that has joined, leaves, or is lost.
    caf::result<void>(node_status_change),
    // Receives the outcome of a sampled round that the run's own process has computed.
    caf::result<void>(replay_report),
    // Timer: ends the programs of nodes if the run is interrupted. The actor sends it to itself.
    caf::result<void>(node_tick),
    // Keeps its thread polling while more messages are expected. The actor sends it to itself.
    caf::result<void>(poll_tick)>;

/// Carries messages between the run and the workers of a node.
using node_gateway_actor = caf::typed_actor<
    // Receives the workers. First message.
    caf::result<void>(worker_links),
    // Sends the report of a worker to the run.
    caf::result<void>(wave_report),
    // Forwards a message of the run, not parsed yet, to the worker that it concerns.
    caf::result<void>(node_frame),
    // Timer: wakes paused workers after results have been sent. The actor sends it to itself.
    caf::result<void>(node_tick)>;

/// Hosts the half of the method that a party runs (runtime/federation/parties.hpp).
using party_actor = caf::typed_actor<
    // Folds uploads of clients, in order of virtual time.
    caf::result<void>(deliveries),
    // Takes the step at the end of a round. Returns the model or the advice.
    caf::result<step_taken>(take_step),
    // Returns the summary metrics of the half. The server also returns the named tensors of its predictor.
    caf::result<final_model>(save_model),
    // Appends the state of the half to a checkpoint, which holds each shared tensor once.
    caf::result<saved_state>(save_state),
    // Restores the state of the half. Returns the rest of the checkpoint.
    caf::result<restored_state>(restore_state),
    // Receives the outcomes of a batch that a worker has run for this party.
    caf::result<void>(batch_done)>;

/// Party that opens tasks and rounds and whose predictor is evaluated.
using server_actor = party_actor::extend<
    // Opens a task. Returns its plan.
    caf::result<task_plan>(open_task),
    // Opens a round. Returns the broadcast, as clients receive it, and its size in bytes.
    caf::result<opened_round>(open_round),
    // Returns accuracy and loss on the test rows of each opened task.
    caf::result<evaluated>(evaluate),
    // After the last task: returns the deciles of the clients' accuracies, in percent. A client's accuracy is a mean
    // over tasks and classes, weighted by the client's training rows in each.
    caf::result<fairness>(measure_fairness)>;

/// Hosts one round of one client, which starts when the actor is spawned, and ends with it. After each stage and at the
/// end it sends a round_progress to the worker that hosts its shard.
using client_actor = caf::typed_actor<
    // Resumes the round with the results of its jobs.
    caf::result<void>(job_outcomes)>;

/// Hosts shards and runs batches; no other actor computes. Each worker has one executor and one thread.
using worker_actor = caf::typed_actor<
    // Receives the other actors. First message.
    caf::result<void>(worker_links),
    // Starts rounds of a shard. The replies are wave_reports; the last one is marked.
    caf::result<void>(start_rounds),
    // Handles a client that has reached its next stage or its end.
    caf::result<void>(round_progress),
    // Runs exactly these batches. The replies are wave_reports; the last one is marked.
    caf::result<void>(release),
    // Runs the next ready batch. Repeats until there is none.
    caf::result<void>(next_batch),
    // Receives the outcomes of a batch of its shard that another worker has run.
    caf::result<void>(batch_done),
    // Discards rounds that were started and have not finished.
    caf::result<void>(abandon)>;

/// Writes the files of a run and prints its progress. Returns an error if a file cannot be written.
using recorder_actor = caf::typed_actor<
    // Writes an evaluation as a line of metrics.jsonl, at the end of a task also as a row of the accuracy matrix.
    caf::result<void>(evaluation_record),
    // Appends lines to events.csv.
    caf::result<void>(recorded_events),
    // Prints a warning.
    caf::result<void>(run_warning),
    // Updates the printed progress of the run.
    caf::result<void>(progress_snapshot),
    // Updates the printed progress of a worker's program.
    caf::result<void>(program_progress),
    // Writes the model at the end of a task to models/task_N.safetensors.
    caf::result<void>(save_task_model),
    // Writes the final predictor to model.safetensors. Keeps the summary metrics of the method.
    caf::result<void>(final_model),
    // Writes summary.json and returns it.
    caf::result<run_summary>(finish_run),
    // Adds its state to a checkpoint. Replies once the checkpoint is on disk.
    caf::result<void>(save_checkpoint)>;

/// Actors with which workers exchange messages. A node has only workers and the actor that sends reports to the run.
struct worker_links {
  report_sink_actor scheduler{};      ///< Receiver of reports.
  std::vector<party_actor> parties{}; ///< Indexed by party_id; null if the method has no such party.
  recorder_actor recorder{};
  std::vector<worker_actor> workers{}; ///< All workers, by number.
};

/// Writes checkpoints on its own thread, because it waits for the disk.
using checkpoint_writer_actor = caf::typed_actor<
    // Replies once the checkpoint is on disk. After an error all earlier checkpoints are still complete.
    caf::result<void>(write_checkpoint)>;

} // namespace mneme
