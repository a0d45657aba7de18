/// shard: hosts the rounds of some clients, parks their jobs, and forms batches that are ready to run.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/compute/client_host.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/base/assignment_table.hpp"
namespace mneme {

/// Inputs are rounds, answers of clients and results of batches; outputs are reports and batches. A shard uses neither
/// actors nor threads: its clients run in a client_host.
class shard {
public:
  /// @param run, clients both must outlive the shard
  shard(shard_id id, const run_context& run, client_host& clients);

  /// Starts the rounds of a wave. Each is reported once it has requested its first jobs or has ended.
  void start(start_rounds wave);
  /// Handles the outcome of a client's turn: new jobs, the result of the round, or the failure of the round.
  void on_round_progress(assignment_id id, round_step&& step);
  /// Makes exactly these batches of parked jobs ready to run. Throws std::invalid_argument for a job that is not
  /// parked.
  void release(std::vector<composition> batches);
  /// Passes the results of a batch to its clients and resumes them.
  void on_batch_done(const composition& ids, outcomes done);
  /// Discards rounds that were started and have not finished.
  void forget(const std::vector<assignment_id>& rounds);

  /// Returns and removes the reports for the scheduler. The last report of a wave follows once all clients wait or have
  /// ended and no result is missing; earlier reports contain finished rounds.
  [[nodiscard]] std::vector<wave_report> take_reports() { return std::exchange(reports_, {}); }
  /// True if take_reports() or take_batches() has something to return.
  [[nodiscard]] bool has_news() const { return !reports_.empty() || !ready_.empty(); }
  /// Returns and removes the batches that are ready, in the order in which they should run.
  [[nodiscard]] std::vector<ready_batch> take_batches() { return std::exchange(ready_, {}); }

private:
  /// A client's round: the jobs of its current stage, and the results received so far.
  struct active_round {
    client_id client{};
    std::uint32_t visit = 0;
    virtual_time ready{}; // virtual time at which the client's download ends
    std::unique_ptr<client_handle> turns{};
    std::uint32_t stage = 0;
    plan parked{}; // a job that was moved into a batch leaves an empty slot
    outcomes known{};
    std::size_t outcomes_missing = 0;
  };
  struct job_kind {
    fuse_key key{};
    std::int64_t width = 1;
  };

  void interrupt(job_id last, active_round& round);
  void finish(assignment_id id, client_result&& result);
  void park(assignment_id id, active_round& round, plan jobs);
  /// Returns key and width of a job. The last value is cached, since clients of a round usually request the same
  /// training.
  [[nodiscard]] const job_kind& kind_of(const work& job);
  void start_at_once();
  [[nodiscard]] virtual_time due_of(const issued_job& issued);
  [[nodiscard]] ready_batch make_ready_batch(composition ids);
  [[nodiscard]] work& waiting_job(const job_id& id);
  void report_finished();
  void report_if_idle();

  const run_context& run_;
  client_host& clients_;
  assignment_table<active_round> rounds_;
  train_job last_training_; // training job to which last_kind_ belongs, without rows and weights
  job_kind last_kind_;
  bool at_once_ = false;            // true: jobs of rounds that start now run without waiting for a release
  std::size_t answers_missing_ = 0; // number of running clients; the barrier waits for them
  std::size_t batches_missing_ = 0; // number of ready or running batches; the barrier waits for them, too
  wave_report report_;              // the report being built
  std::int64_t finished_bytes_ = 0; // total size of the uploads in report_
  std::vector<wave_report> reports_;
  std::vector<ready_batch> ready_;
};

} // namespace mneme
