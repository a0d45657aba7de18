/// run_log: what a run leaves behind of itself: its report, its digests and its events.
#pragma once
#include "runtime/federation/batch_planner.hpp"
#include "runtime/federation/party_steps.hpp"
#include "runtime/federation/run_records.hpp"
#include "runtime/federation/run_report.hpp"
namespace mneme {

class run_log {
public:
  /// What events.csv says of an event besides its time.
  struct event_place {
    task_id task{};
    round_id round{};
  };

  /// @param trace events are recorded, and the debugging digest is made
  /// @param values_round what is delivered in this round, counted from 1, is kept as it is; 0: in none
  explicit run_log(bool trace, std::int64_t values_round = 0) : trace_(trace), values_round_(values_round) {}

  /// Counts, which callers raise where things happen.
  [[nodiscard]] run_report& report() noexcept { return report_; }

  void record(virtual_time at, const event_place& place, const char* actor, const char* event,
              std::optional<client_id> client, std::int64_t bytes);
  /// So many events wait that they should be written.
  [[nodiscard]] bool has_many_events() const noexcept;
  [[nodiscard]] recorded_events take_events() { return std::exchange(lines_, {}); }

  /// An upload reaches the server: the run digest, the counts. @param upload before it is handed over
  void delivered(virtual_time at, const delivery& upload, std::int64_t bytes);
  /// The same of what reaches another party.
  void received(virtual_time at, party_id where, const delivery& sent, std::int64_t bytes);
  /// A client's activity is over without an upload.
  void ended_activity(virtual_time at, client_id client);
  /// What a client has counted, once its result holds.
  void counted(const std::map<std::string, double>& counts);
  /// What a client's trainings say of their loss, once its upload is delivered. Null: nothing.
  void trained(const std::shared_ptr<const training_losses>& losses);
  /// The round, or server step, has taken in its last upload: what is delivered from now on is of the next.
  void closed() { step_losses_ = std::exchange(open_losses_, {}); }
  /// Those of the round that was closed last.
  [[nodiscard]] const training_losses& step_losses() const noexcept { return step_losses_; }
  /// What a party besides the server says from now on, and what it was told.
  void advised(party_id who, const step_taken& step);
  /// The server has stepped, and its round is closed.
  void stepped(virtual_time at, const step_taken& step);
  /// The server has evaluated the model. Returns a line of metrics.jsonl, with what has been counted so far.
  [[nodiscard]] evaluation_record add_evaluation(const evaluated& sums);
  /// Batches begin to run. Those of rounds that run again are not counted twice.
  void released(const std::vector<shard_batches>& batches);

  /// Keeps what there is, for a wave that may fail: how a failed run ends does not depend on how far the wave had come.
  void mark(virtual_time at);
  /// Goes back to the mark. Returns its time.
  virtual_time return_to_mark();
  /// The whole report, at the end of the run.
  [[nodiscard]] run_report ended(run_status status, std::string error, virtual_time at);

  void persist(archive& state);

private:
  /// Digests of the tensors that reach a party, and the tensors, where either is wanted.
  void trace(virtual_time at, const char* party, const delivery& sent);

  struct kept {
    run_report report{};
    run_digest digest{}, trace_digest{};
    training_losses open_losses{};
    std::size_t events = 0, steps = 0, deliveries = 0, values = 0;
    virtual_time at{};
  };

  bool trace_;
  std::int64_t values_round_;
  run_report report_;
  run_digest digest_, trace_digest_;          // training losses enter neither
  training_losses open_losses_, step_losses_; // of the open round, and of the one before
  recorded_events lines_;                     // that wait for the recorder
  kept mark_;
};

} // namespace mneme
