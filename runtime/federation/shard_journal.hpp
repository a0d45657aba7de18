/// shard_journal: record of a shard's assignments and reports, so that another host can take the shard over at any
/// time.
#pragma once
#include "runtime/federation/rerun.hpp"
#include "runtime/federation/shard_rounds.hpp"
#include <set>
#include <variant>
namespace mneme {

/// Sits between the federation and the host of one shard. While the host works, it forwards messages and records them.
/// If the host is lost, the shard's rounds are rerun at the next host, up to the stages they had reached; then
/// unanswered requests are repeated. The federation only sees a wave that takes longer.
class shard_journal {
public:
  using command = std::variant<start_rounds, release, abandon>;

  /// @param clients must outlive the journal
  shard_journal(shard_id shard, const population& clients) : shard_(shard), rounds_(shard, clients) {}

  // -- inputs: from the federation
  void take(command order);

  // -- inputs: from the host and about it
  /// Returns the error in a report of the current host concerning its rounds and jobs; empty if valid.
  [[nodiscard]] std::string wrong_with(const wave_report& report) const;
  /// Validates a report and applies it, with the durations of its jobs filled in. Returns the error; empty if valid. An
  /// invalid report changes nothing.
  [[nodiscard]] std::string take(wave_report report);
  /// Applies a valid report. @pre wrong_with() returned empty
  void accept(wave_report report);
  /// The host is lost: commands wait for the next one.
  void host_lost();
  /// A new host, without any state of this shard. @pre there is no host
  void host_found();
  /// Moves the shard from a working host to another. Returns the message that makes the old host discard its rounds.
  /// @pre is_quiet(), and its commands were taken
  [[nodiscard]] abandon change_host();

  // -- outputs
  /// Commands for the host.
  [[nodiscard]] std::vector<command> take_commands() { return std::exchange(commands_, {}); }
  /// Reports for the federation.
  [[nodiscard]] std::vector<wave_report> take_reports() { return std::exchange(reports_, {}); }
  /// True if the shard has no round and no pending request: another host could start without any rerun.
  [[nodiscard]] bool is_idle() const noexcept { return rounds_.by_id().empty() && !wave_ && waiting_.empty(); }
  /// True if no reply of the host is pending. Rounds may be at the shard, with their clients waiting.
  [[nodiscard]] bool is_quiet() const noexcept { return host_ == host_state::well && !wave_ && waiting_.empty(); }
  /// True if there is a host and a reply of it is pending.
  [[nodiscard]] bool awaits_host() const noexcept {
    return host_ != host_state::none && (wave_ || host_ != host_state::well);
  }
  /// Assignment of a round at the shard; null if there is none.
  [[nodiscard]] const assignment* given(assignment_id id) const;
  /// Number of stages that the host has reported for a round at the shard.
  [[nodiscard]] std::uint32_t stages_told(assignment_id id) const;
  /// Number of rounds that the host must report before its wave ends.
  [[nodiscard]] std::size_t rounds_owed() const noexcept {
    return host_ == host_state::repeating ? unrepeated_.size() : rounds_.owed();
  }

private:
  enum class host_state : std::uint8_t {
    none,
    well,
    repeating, ///< Rounds are rerun up to the stages they had reached.
    settling,  ///< Rounds have caught up; released jobs run again, but no wave depends on them.
  };
  /// The wave that the federation waits for.
  struct open_wave {
    bool at_once = false;
    bool is_listed = false; // its batches are known
  };

  void begin(const start_rounds& wave);
  void begin(const release& order);
  void begin(const abandon& rounds);
  [[nodiscard]] std::string wrong_with_round(assignment_id id) const;
  [[nodiscard]] std::string wrong_with_ends(const wave_report& report, std::vector<assignment_id>& ended) const;
  [[nodiscard]] std::string wrong_with_released(const wave_report& report) const;
  [[nodiscard]] std::string wrong_with_jobs(const std::vector<issued_job>& issued, std::size_t& rounds) const;
  void note(wave_report& report);
  void end_wave();
  void repeat(wave_report& report);
  void settle();
  void go_on();

  shard_id shard_;
  shard_rounds rounds_; // pending rounds are not counted during a rerun
  host_state host_ = host_state::none;
  std::optional<open_wave> wave_;
  rerun repeated_;                     // at the new host
  std::set<assignment_id> unrepeated_; // rounds that must be reported next
  wave_report answer_;                 // of rounds whose start has not been reported
  std::vector<command> waiting_;
  std::vector<command> commands_;
  std::vector<wave_report> reports_;
};

} // namespace mneme
