/// All typed actor interfaces, in the order of a round.
#pragma once
#include "actors/protocol/messages.hpp"
#include <caf/result.hpp>
#include <caf/typed_actor.hpp>
namespace mneme {

/// Owns virtual time: the event queue, the links, the rounds, the memories of all clients.
using scheduler_actor = caf::typed_actor<
    // Runs to the end; a failure is a report that names client, round and job in words.
    caf::result<run_report>(run_request),
    // Ends the run after the event at hand.
    caf::result<void>(stop_run),
    // A shard has answered a start or a release: every client it resumed waits again or is done.
    caf::result<void>(wave_report)>;

/// Whoever is told what became of started rounds and released jobs.
using report_taker_actor = caf::typed_actor<
    // A report of a shard.
    caf::result<void>(wave_report)>;

/// Whoever hosts shards, or finds hosts for them.
using shard_host_actor = caf::typed_actor<
    // Starts rounds of a shard; answered by wave_reports, the last of which says so.
    caf::result<void>(start_rounds),
    // Runs exactly these batches; answered in the same way.
    caf::result<void>(release),
    // Forgets rounds that were started and not finished.
    caf::result<void>(abandon)>;

/// Stands between the scheduler and the hosts of shards where a run has nodes.
using placement_actor = caf::typed_actor<
    // To the shard, wherever it is.
    caf::result<void>(start_rounds),
    // The same.
    caf::result<void>(release),
    // The same.
    caf::result<void>(abandon),
    // A shard that is hosted in the run's own process tells.
    caf::result<void>(wave_report),
    // A report of a shard on a node, as it has arrived.
    caf::result<void>(node_frame),
    // A node was lost, or is back.
    caf::result<void>(node_change),
    // This process has come further with a round that a node computes, too.
    caf::result<void>(home_report),
    // Looks for nodes that are back; it tells itself.
    caf::result<void>(look_after_nodes),
    // Keeps its thread awake, because more will come soon; it tells itself.
    caf::result<void>(look_for_frames)>;

/// Carries messages between the run and the workers of a node.
using uplink_actor = caf::typed_actor<
    // Who the workers are; comes first.
    caf::result<void>(worker_peers),
    // From a worker, for the run.
    caf::result<void>(wave_report),
    // From the run, for a worker, as it has arrived.
    caf::result<void>(node_frame),
    // Wakes workers once results have left; it tells itself.
    caf::result<void>(look_after_nodes)>;

/// Hosts the half of the method that a party runs (runtime/federation/parties.hpp).
using party_actor = caf::typed_actor<
    // What clients have sent it, in virtual order.
    caf::result<void>(deliveries),
    // Its step at the end of a round; answers with what it says.
    caf::result<step_taken>(take_step),
    // Answers with the half's own figures; the server with the predictor's named tensors, too.
    caf::result<learnt>(save_model),
    // Appends what the half would go on with; what is shared is saved once.
    caf::result<saved_state>(save_state),
    // Goes on with it, and hands back the rest.
    caf::result<restored_state>(restore_state),
    // A worker has run one of its jobs.
    caf::result<void>(batch_done)>;

/// The party that opens tasks and rounds, and whose predictor is evaluated.
using server_actor = party_actor::extend<
    // A task begins; answers how it is run.
    caf::result<task_plan>(open_task),
    // Answers with what the round's clients receive, as it arrives, and its bytes.
    caf::result<opened_round>(open_round),
    // Accuracy and loss on the test rows of each task up to one.
    caf::result<evaluated>(evaluate),
    // Deciles over clients of the predictor's accuracy on rows like their own, when all tasks are over.
    caf::result<fairness>(measure_fairness)>;

/// Hosts one round of one client and ends with it. Spawned with its assignment, so it starts at once; it answers every
/// stage, and its end, with a round_answer to the worker that hosts its shard.
using client_actor = caf::typed_actor<
    // Resumes the round.
    caf::result<void>(job_outcomes)>;

/// Hosts shards, and computes batches: the only actor that does. It has one executor and one thread.
using worker_actor = caf::typed_actor<
    // Who else there is; comes first.
    caf::result<void>(worker_peers),
    // Starts rounds of a shard; answered by wave_reports, the last of which says so.
    caf::result<void>(start_rounds),
    // A client's coroutine has come to its next stage or to its end.
    caf::result<void>(round_answer),
    // Runs exactly these batches; answered in the same way.
    caf::result<void>(release),
    // Runs the next batch of all that are ready, and goes on until there is none.
    caf::result<void>(next_batch),
    // Another worker has run a batch of a shard that is hosted here.
    caf::result<void>(batch_done),
    // Forgets rounds that were started and not finished.
    caf::result<void>(abandon)>;

/// Writes everything a run leaves behind, and shows its progress. Failures to write are errors.
using recorder_actor = caf::typed_actor<
    // One evaluation: a line of metrics.jsonl, and at the end of a task a row of the matrix.
    caf::result<void>(evaluation_record),
    // Lines of events.csv.
    caf::result<void>(recorded_events),
    // Shown to the user.
    caf::result<void>(run_warning),
    // Where the run stands.
    caf::result<void>(progress_snapshot),
    // How far a long program of a worker has come.
    caf::result<void>(program_progress),
    // The model at the end of a task: models/task_N.safetensors.
    caf::result<void>(keep_model),
    // The final predictor: model.safetensors; and the method's figures.
    caf::result<void>(learnt),
    // Writes summary.json and answers with it.
    caf::result<run_summary>(finish_run),
    // Adds its own state and answers when the checkpoint is on the disk.
    caf::result<void>(keep_state)>;

/// The actors that workers talk to. On a node there are but those that compute, and who carries reports.
struct worker_peers {
  report_taker_actor scheduler{}; ///< Who is given reports.
  std::vector<party_actor> parties{}; ///< By party_id; null where the method has none.
  recorder_actor recorder{};
  std::vector<worker_actor> workers{}; ///< All of them, by number.
};

/// Writes checkpoints, on a thread of its own: it waits for the disk.
using checkpoint_writer_actor = caf::typed_actor<
    // Answers when it is on the disk; an error says why it is not, and all before are whole.
    caf::result<void>(write_checkpoint)>;

} // namespace mneme
