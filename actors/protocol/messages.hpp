/// messages: messages between actors, in the order of a round. Messages of the federation are in runtime/federation.
#pragma once
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
#include "runtime/federation/wave.hpp"
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/default_enum_inspect.hpp>
#include <caf/error.hpp>
#include <caf/is_error_code_enum.hpp>
#include <caf/type_id.hpp>
namespace mneme {

// -- run --------------------------------------------------------------------------------------------------------------

/// Reason why a run ended early. The error text names client, round and job.
enum class run_errc : std::uint8_t {
  round_failed = 1, ///< A client's round threw an exception, or one of its jobs failed and the round did not handle the
                    ///< failure.
  server_failed,    ///< The server half threw an exception, or one of its jobs failed.
  recorder_failed,  ///< A file in the run directory could not be written.
  actor_lost,       ///< A shard, worker or server ended during the run.
  interrupted,      ///< Not a failure: a server program stopped between two slices.
};
std::string to_string(run_errc);
bool from_string(caf::string_view, run_errc&);
bool from_integer(std::underlying_type_t<run_errc>, run_errc&);
template <class Inspector>
bool inspect(Inspector& f, run_errc& x) {
  return caf::default_enum_inspect(f, x);
}

/// Returns the message of an error without CAF's prefix.
std::string error_message(const caf::error& error);

struct run_request {}; // simulation -> scheduler; the reply is the run_report
struct stop_run {};    // simulation -> scheduler, at SIGINT

// a table of messages
// clang-format off
// -- parties ----------------------------------------------------------------------------------------------------------

struct save_model {};                                                         // simulation -> parties
// Reply to save_model; simulation -> recorder.
struct final_model {
  tensors_ref model{};
  std::map<std::string, double> summary_metrics{};
  std::map<std::string, at::Tensor> sample_images{}; // keys: file names without ".png"
};
struct measure_fairness {};                                                   // simulation -> server
struct fairness { std::vector<double> deciles{}; };                           // reply

// -- a wave: jobs whose results are needed to advance virtual time ----------------------------------------------------

/// Client -> worker that hosts its shard.
struct round_progress { shard_id to{}; assignment_id id{}; round_step step{}; };
struct job_outcomes { outcomes results{}; };                                  // worker -> client
struct next_batch {};                                                         // sender of a batch -> worker
/// `to`: shard of the batch; parties read only `ids`. `done`: outcomes in the order of `ids`.
struct batch_done { shard_id to{}; composition ids{}; outcomes done{}; };     // worker -> owner of the batch
struct worker_links;                                                          // run -> worker; see interfaces.hpp

// -- nodes ------------------------------------------------------------------------------------------------------------

/// A complete network message, not parsed yet. `node`: the sender; 0 on a node.
struct node_frame { std::uint32_t node = 0; archive::buffer content{}; };     // connections -> placement, gateway
enum class node_event : std::uint8_t { joined, leaving, lost };
/// Connections -> placement. `reason`: why the node was lost. `grace`: time until a leaving node disconnects.
struct node_status_change {
  std::uint32_t node = 0;
  node_event event{};
  std::string reason{};
  std::chrono::milliseconds grace{};
};
/// Outcome of a sampled round in the run's own process; sent to placement. Without a result, `failure` is the reason.
struct replay_report { assignment_id id{}; std::optional<client_result> result{}; std::string failure{}; };
struct node_tick {};                                                   // placement, gateway -> themselves
struct poll_tick {};                                                    // placement -> itself

// -- recorder ---------------------------------------------------------------------------------------------------------

struct finish_run { run_report report{}; };                                   // simulation -> recorder

// -- checkpoints ------------------------------------------------------------------------------------------------------

struct write_checkpoint { std::vector<archive> parts{}; };                    // recorder -> checkpoint writer

} // namespace mneme

CAF_BEGIN_TYPE_ID_BLOCK(mneme, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(mneme, (mneme::run_errc))
  CAF_ADD_TYPE_ID(mneme, (mneme::run_request))
  CAF_ADD_TYPE_ID(mneme, (mneme::stop_run))
  CAF_ADD_TYPE_ID(mneme, (mneme::run_report))
  CAF_ADD_TYPE_ID(mneme, (mneme::open_task))
  CAF_ADD_TYPE_ID(mneme, (mneme::task_plan))
  CAF_ADD_TYPE_ID(mneme, (mneme::open_round))
  CAF_ADD_TYPE_ID(mneme, (mneme::opened_round))
  CAF_ADD_TYPE_ID(mneme, (mneme::deliveries))
  CAF_ADD_TYPE_ID(mneme, (mneme::take_step))
  CAF_ADD_TYPE_ID(mneme, (mneme::step_taken))
  CAF_ADD_TYPE_ID(mneme, (mneme::evaluate))
  CAF_ADD_TYPE_ID(mneme, (mneme::evaluated))
  CAF_ADD_TYPE_ID(mneme, (mneme::save_model))
  CAF_ADD_TYPE_ID(mneme, (mneme::final_model))
  CAF_ADD_TYPE_ID(mneme, (mneme::start_rounds))
  CAF_ADD_TYPE_ID(mneme, (mneme::wave_report))
  CAF_ADD_TYPE_ID(mneme, (mneme::release))
  CAF_ADD_TYPE_ID(mneme, (mneme::round_progress))
  CAF_ADD_TYPE_ID(mneme, (mneme::job_outcomes))
  CAF_ADD_TYPE_ID(mneme, (mneme::next_batch))
  CAF_ADD_TYPE_ID(mneme, (mneme::batch_done))
  CAF_ADD_TYPE_ID(mneme, (mneme::worker_links))
  CAF_ADD_TYPE_ID(mneme, (mneme::abandon))
  CAF_ADD_TYPE_ID(mneme, (mneme::evaluation_record))
  CAF_ADD_TYPE_ID(mneme, (mneme::recorded_events))
  CAF_ADD_TYPE_ID(mneme, (mneme::run_warning))
  CAF_ADD_TYPE_ID(mneme, (mneme::progress_snapshot))
  CAF_ADD_TYPE_ID(mneme, (mneme::finish_run))
  CAF_ADD_TYPE_ID(mneme, (mneme::run_summary))
  CAF_ADD_TYPE_ID(mneme, (mneme::measure_fairness))
  CAF_ADD_TYPE_ID(mneme, (mneme::fairness))
  CAF_ADD_TYPE_ID(mneme, (mneme::save_state))
  CAF_ADD_TYPE_ID(mneme, (mneme::saved_state))
  CAF_ADD_TYPE_ID(mneme, (mneme::restore_state))
  CAF_ADD_TYPE_ID(mneme, (mneme::save_task_model))
  CAF_ADD_TYPE_ID(mneme, (mneme::save_checkpoint))
  CAF_ADD_TYPE_ID(mneme, (mneme::write_checkpoint))
  CAF_ADD_TYPE_ID(mneme, (mneme::restored_state))
  CAF_ADD_TYPE_ID(mneme, (mneme::program_progress))
  CAF_ADD_TYPE_ID(mneme, (mneme::node_frame))
  CAF_ADD_TYPE_ID(mneme, (mneme::node_status_change))
  CAF_ADD_TYPE_ID(mneme, (mneme::node_tick))
  CAF_ADD_TYPE_ID(mneme, (mneme::poll_tick))
  CAF_ADD_TYPE_ID(mneme, (mneme::replay_report))
CAF_END_TYPE_ID_BLOCK(mneme)
CAF_ERROR_CODE_ENUM(mneme::run_errc)

// Within a process messages pass tensors as handles; nothing is serialized.
#define MNEME_IN_PROCESS(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(mneme::type)
MNEME_IN_PROCESS(run_request) MNEME_IN_PROCESS(stop_run) MNEME_IN_PROCESS(run_report) MNEME_IN_PROCESS(open_task)
MNEME_IN_PROCESS(task_plan) MNEME_IN_PROCESS(open_round) MNEME_IN_PROCESS(opened_round) MNEME_IN_PROCESS(deliveries)
MNEME_IN_PROCESS(take_step) MNEME_IN_PROCESS(step_taken) MNEME_IN_PROCESS(evaluate) MNEME_IN_PROCESS(evaluated)
MNEME_IN_PROCESS(save_model) MNEME_IN_PROCESS(final_model) MNEME_IN_PROCESS(start_rounds)
MNEME_IN_PROCESS(wave_report) MNEME_IN_PROCESS(release)
MNEME_IN_PROCESS(abandon) MNEME_IN_PROCESS(evaluation_record)
MNEME_IN_PROCESS(recorded_events) MNEME_IN_PROCESS(run_warning)
MNEME_IN_PROCESS(round_progress) MNEME_IN_PROCESS(job_outcomes) MNEME_IN_PROCESS(next_batch)
MNEME_IN_PROCESS(batch_done) MNEME_IN_PROCESS(worker_links)
MNEME_IN_PROCESS(progress_snapshot) MNEME_IN_PROCESS(finish_run) MNEME_IN_PROCESS(run_summary)
MNEME_IN_PROCESS(measure_fairness) MNEME_IN_PROCESS(fairness) MNEME_IN_PROCESS(save_state)
MNEME_IN_PROCESS(saved_state) MNEME_IN_PROCESS(restore_state) MNEME_IN_PROCESS(save_task_model)
MNEME_IN_PROCESS(save_checkpoint)
MNEME_IN_PROCESS(write_checkpoint) MNEME_IN_PROCESS(restored_state)
MNEME_IN_PROCESS(program_progress) MNEME_IN_PROCESS(node_frame) MNEME_IN_PROCESS(node_status_change)
MNEME_IN_PROCESS(node_tick) MNEME_IN_PROCESS(poll_tick) MNEME_IN_PROCESS(replay_report)
#undef MNEME_IN_PROCESS
    // clang-format on
