/// run_log: the report, digests and event lines of a run.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
namespace mneme {

class run_log {
public:
  /// Columns of a line in events.csv, except its time.
  struct event_place {
    task_id task{};
    round_id round{};
  };

  /// @param trace records events and computes the debugging digest
  /// @param dumped_round round, counted from 1, whose deliveries are dumped; 0: no dump
  explicit run_log(bool trace, std::int64_t dumped_round = 0) : trace_(trace), dumped_round_(dumped_round) {}

  /// The counters of the run. Callers increment them.
  [[nodiscard]] run_report& report() noexcept { return report_; }

  /// Adds a line to events.csv, if events are traced.
  void record(virtual_time at, const event_place& place, const char* actor, const char* event,
              std::optional<client_id> client, std::int64_t bytes);
  /// True if enough lines are buffered to send them to the recorder.
  [[nodiscard]] bool has_many_events() const noexcept;
  [[nodiscard]] recorded_events take_events() { return std::exchange(lines_, {}); }

  /// Adds a delivery at the server to the digest and the counters. Call before moving from `upload`.
  void delivered(virtual_time at, const delivery& upload, std::int64_t bytes);
  /// Adds a delivery at another party to the digest and the counters.
  void received(virtual_time at, party_id where, const delivery& sent, std::int64_t bytes);
  /// Counts an activity that ended without an upload.
  void ended_activity(virtual_time at, client_id client);
  /// Adds a client's named counts once its result is committed.
  void counted(const std::map<std::string, double>& counts);
  /// Adds the training losses of a delivered upload. @param losses may be null
  void trained(const std::shared_ptr<const training_losses>& losses);
  /// Closes the round or server step. Later deliveries belong to the next one.
  void closed() { step_losses_ = std::exchange(open_losses_, {}); }
  /// Training losses of the last closed round.
  [[nodiscard]] const training_losses& step_losses() const noexcept { return step_losses_; }
  /// Adds the advice of a party other than the server to the digest, and the party's bytes to the counters.
  void advised(party_id who, const step_taken& step);
  /// Adds a server step to the digest and to the lines for the recorder.
  void stepped(virtual_time at, const step_taken& step);
  /// Adds an evaluation. Returns its line of metrics.jsonl, including all counters so far.
  [[nodiscard]] evaluation_record add_evaluation(const evaluated& sums);
  /// Counts batches that start. Callers omit batches of reruns.
  void released(const std::vector<shard_batches>& batches);

  /// Saves the current state. If a wave fails, the run ends with this state, so that the report does not depend on the
  /// wave's progress.
  void mark(virtual_time at);
  /// Restores the state saved by mark(). Returns its virtual time.
  virtual_time return_to_mark();
  /// Completes and returns the report at the end of the run.
  [[nodiscard]] run_report ended(run_status status, std::string error, virtual_time at);

  void persist(archive& state);

private:
  /// Writes digests of the tensors that a party receives. In the dumped round, writes the tensors, too.
  void trace(virtual_time at, const char* party, const delivery& sent);

  struct kept {
    run_report report{};
    run_digest digest{}, trace_digest{};
    training_losses open_losses{};
    std::size_t events = 0, steps = 0, deliveries = 0, values = 0;
    virtual_time at{};
  };

  bool trace_;
  std::int64_t dumped_round_;
  run_report report_;
  run_digest digest_, trace_digest_;          // neither contains training losses
  training_losses open_losses_, step_losses_; // losses of the open round, and of the last closed round
  recorded_events lines_;                     // lines buffered for the recorder
  kept mark_;
};

} // namespace mneme
