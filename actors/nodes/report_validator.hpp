/// report_validator: validates reports of nodes and compares a sample of their results with local results.
#pragma once
#include "actors/protocol/messages.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/shard_journal.hpp"
namespace mneme {

/// Result of the validation of a report.
struct validation_result {
  std::string error{};           ///< Reason for rejecting the report; empty: valid.
  bool has_other_result = false; ///< true: the error is a result that differs from the local one.
  bool is_pending = false;       ///< true: a sampled round has not been replayed yet; validate again after its replay.
};

/// Checks sizes, ranges and names in reports that the shard's journal has accepted. Compares sampled rounds bit by bit
/// (worker.verify_share) and trusts all others. A value type without actors.
class report_validator {
public:
  /// @param secret selects the sampled rounds; no result of the run depends on it
  report_validator(run_context_ref run, std::uint64_t secret) : run_(std::move(run)), secret_(secret) {}

  [[nodiscard]] validation_result validate(const wave_report& report, const shard_journal& journal) const;
  /// True if the round is sampled.
  [[nodiscard]] bool is_sampled(assignment_id id) const;
  /// Records that the replay of a sampled round starts. Returns false if it was started before.
  bool begin(assignment_id id, shard_id at) { return replays_.try_emplace(id, replay{.at = at}).second; }
  /// Records the outcome of a replay. Returns the shard of the round; nullopt if the round was forgotten.
  [[nodiscard]] std::optional<shard_id> end(replay_report outcome);
  void forget(assignment_id id) { replays_.erase(id); }

private:
  struct replay {
    shard_id at{};
    std::optional<replay_report> outcome{};
  };
  [[nodiscard]] std::string value_error(const finished_round& finished, const assignment& given) const;
  [[nodiscard]] std::string failure_error(const round_failure& failure) const;

  run_context_ref run_;
  std::uint64_t secret_;
  std::map<assignment_id, replay> replays_;
};

} // namespace mneme
