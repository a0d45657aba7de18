/// shard: hosts the rounds of one part of the population, parks their jobs, and makes batches of them ready to run.
#pragma once
#include "actors/compute/batch_queues.hpp"
#include "actors/compute/client_host.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/base/assignment_table.hpp"
namespace mneme {

/// Rounds, answers and outcomes go in, reports and batches come out. It knows neither actors nor threads: its clients
/// run where its host lets them.
class shard {
public:
  /// @param run, clients outlive the shard
  shard(shard_id id, const run_context& run, client_host& clients);

  /// Starts rounds; each is answered when it has come to its first jobs, or to its end.
  void start(start_rounds wave);
  /// A client's turn has ended.
  void answered(assignment_id id, round_step&& step);
  /// Makes exactly these batches of parked jobs ready.
  void release(std::vector<composition> batches);
  /// Hands over the outcomes of a batch and lets its clients go on.
  void take(const composition& ids, outcomes done);
  /// Forgets rounds that were started and not finished.
  void forget(const std::vector<assignment_id>& rounds);

  /// What the scheduler has to be told since the last call. The report that is the last one of its wave comes when all
  /// clients wait or are done and no outcome is missing; those before it hold finished rounds.
  [[nodiscard]] std::vector<wave_report> take_reports() { return std::exchange(reports_, {}); }
  /// True if any of the two has something to hand out.
  [[nodiscard]] bool has_news() const { return !reports_.empty() || !ready_.empty(); }
  /// The batches that have become ready since the last call, in the order in which they should run.
  [[nodiscard]] std::vector<ready_batch> take_batches() { return std::exchange(ready_, {}); }

private:
  /// A client at work: its jobs of the present stage, and the outcomes that have come so far.
  struct hosted_round {
    client_id client{};
    std::uint32_t visit = 0;
    virtual_time ready{}; // when its download is over
    std::unique_ptr<hosted_client> turns{};
    std::uint32_t stage = 0;
    plan parked{}; // jobs that are not yet in a batch keep their place
    outcomes known{};
    std::size_t outcomes_missing = 0;
  };
  struct job_kind {
    fuse_key key{};
    std::int64_t width = 1;
  };

  void interrupt(job_id last, hosted_round& round);
  void finish(assignment_id id, client_result&& result);
  void park(assignment_id id, hosted_round& round, plan jobs);
  /// Finds key and width of a job; clients of one round nearly always ask for the same kind of training.
  [[nodiscard]] const job_kind& kind_of(const work& job);
  void start_at_once();
  [[nodiscard]] virtual_time due_of(const issued_job& issued);
  [[nodiscard]] ready_batch made_ready(composition ids);
  [[nodiscard]] work& waiting_job(const job_id& id);
  void report_finished();
  void report_if_quiet();

  const run_context& run_;
  client_host& clients_;
  assignment_table<hosted_round> rounds_;
  train_job last_training_; // without rows and weights: the training whose kind is last_kind_
  job_kind last_kind_;
  bool at_once_ = false;            // what is being started runs without waiting for a release
  std::size_t answers_missing_ = 0; // of clients that run: the barrier waits for them,
  std::size_t batches_missing_ = 0; // and for these that are ready or begun, and without outcomes
  wave_report report_;              // the one that is being gathered
  std::int64_t finished_bytes_ = 0; // of the uploads in it
  std::vector<wave_report> reports_;
  std::vector<ready_batch> ready_;
};

} // namespace mneme
