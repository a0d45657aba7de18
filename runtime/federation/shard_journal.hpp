/// shard_journal: log of a shard's assignments and reports, from which another host can take over the shard.
#pragma once
#include "runtime/federation/rerun_tracker.hpp"
#include "runtime/federation/shard_rounds.hpp"
#include <set>
#include <variant>
namespace mneme {

/// Stands between the federation and the host of one shard. While the host works, the journal records messages and
/// forwards them. If the host is lost, the next host reruns the shard's rounds up to the stages that they had reached.
/// Unanswered commands are then sent again. The federation notices only that the wave takes longer.
class shard_journal {
public:
  using command = std::variant<start_rounds, release, abandon>;

  /// @param clients must outlive the journal
  shard_journal(shard_id shard, const population& clients) : shard_(shard), rounds_(shard, clients) {}

  // -- inputs: from the federation
  void record(command order);

  // -- inputs: the host's reports and changes of host
  /// Validates a report of the current host. Returns the error; "" if it is valid.
  [[nodiscard]] std::string report_error(const wave_report& report) const;
  /// Validates and applies a report, and fills in the durations of its jobs. Returns the error, or "" if it is valid.
  /// An invalid report changes nothing.
  [[nodiscard]] std::string record(wave_report report);
  /// Applies a valid report. @pre report_error(report) returned ""
  void accept(wave_report report);
  /// Records that the host is lost. Commands are queued for the next host.
  void host_lost();
  /// Records a new host, which has no state of this shard. @pre there is no host
  void host_found();
  /// Moves the shard from one working host to another. Returns the message that makes the old host discard its rounds.
  /// @pre is_quiet(), and take_commands() has returned all commands
  [[nodiscard]] abandon change_host();

  // -- outputs
  /// Removes and returns the commands for the host.
  [[nodiscard]] std::vector<command> take_commands() { return std::exchange(commands_, {}); }
  /// Removes and returns the reports for the federation.
  [[nodiscard]] std::vector<wave_report> take_reports() { return std::exchange(reports_, {}); }
  /// True if the shard has no rounds and no unanswered command, so that another host can start without reruns.
  [[nodiscard]] bool is_idle() const noexcept { return rounds_.by_id().empty() && !wave_ && waiting_.empty(); }
  /// True if no reply of the host is pending. Rounds may still be at the shard, with jobs parked.
  [[nodiscard]] bool is_quiet() const noexcept { return host_ == host_state::healthy && !wave_ && waiting_.empty(); }
  /// True if there is a host and one of its replies is pending.
  [[nodiscard]] bool awaits_reply() const noexcept {
    return host_ != host_state::none && (wave_ || host_ != host_state::healthy);
  }
  /// Number of rounds at the shard with released or computed jobs. Another host has to rerun these jobs.
  [[nodiscard]] std::int64_t rounds_with_work() const;
  /// The assignment of a round at the shard. Returns null if the round is not at the shard.
  [[nodiscard]] const assignment* given(assignment_id id) const;
  /// Number of stages that the host has reported for a round at the shard.
  [[nodiscard]] std::uint32_t stages_reported(assignment_id id) const;
  /// Number of rounds that the host must still report in its wave.
  [[nodiscard]] std::size_t rounds_pending() const noexcept {
    return host_ == host_state::rerunning ? not_rerun_.size() : rounds_.pending();
  }

private:
  enum class host_state : std::uint8_t {
    none,
    healthy,
    rerunning,   ///< Rounds rerun up to the stages that they had reached.
    catching_up, ///< All rounds have caught up; released jobs run again, but no wave depends on them.
  };
  /// The wave that the federation is waiting for.
  struct open_wave {
    bool at_once = false;
    bool is_listed = false; // the host has reported its batches
  };

  void begin(const start_rounds& wave);
  void begin(const release& order);
  void begin(const abandon& rounds);
  [[nodiscard]] std::string round_error(assignment_id id) const;
  [[nodiscard]] std::string ends_error(const wave_report& report, std::vector<assignment_id>& ended) const;
  [[nodiscard]] std::string released_jobs_error(const wave_report& report) const;
  [[nodiscard]] std::string jobs_error(const std::vector<issued_job>& issued, std::size_t& rounds) const;
  void note(wave_report& report);
  void end_wave();
  void repeat(wave_report& report);
  void finish_catch_up();
  void apply_waiting();

  shard_id shard_;
  shard_rounds rounds_; // rounds at the shard; the number of pending rounds is not updated during a rerun
  host_state host_ = host_state::none;
  std::optional<open_wave> wave_;
  rerun_tracker rerun_;               // reruns at the new host
  std::set<assignment_id> not_rerun_; // rounds that the host must report next during a rerun
  wave_report answer_;                // collects results of rounds whose start has not been reported yet
  std::vector<command> waiting_;
  std::vector<command> commands_;
  std::vector<wave_report> reports_;
};

} // namespace mneme
