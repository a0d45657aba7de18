/// report_checks: validates reports of nodes against requests and against local results.
#pragma once
#include "actors/nodes/known_forms.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/shard_journal.hpp"
#include <array>
namespace mneme {

/// Result of the validation of a report.
struct report_verdict {
  std::string wrong{};                  ///< Reason for rejecting it; empty: accepted.
  bool is_other_result = false;         ///< Only its numbers are wrong: they differ from the local result.
  bool has_unchecked = false;           ///< It contains results that were not verified.
  std::vector<assignment_id> awaited{}; ///< Rounds to compute locally first; then validate again.
};

/// Validates reports that the shard's journal has accepted. The shape of requests and uploads depends on the method, so
/// it is learned from examples: a round with an unknown shape is computed locally, too, and so are a sample of all
/// rounds and every round that a node reports as failed. A value without actors.
class report_checks {
public:
  /// @param secret selects the sampled rounds; unknown to nodes, and no result depends on it
  report_checks(run_context_ref run, std::uint64_t secret);

  [[nodiscard]] report_verdict judge(const wave_report& report, const shard_journal& journal);
  /// True if the round is in the sample.
  [[nodiscard]] bool samples(assignment_id id) const;
  [[nodiscard]] bool has_begun(assignment_id id) const { return rounds_.contains(id); }
  /// Local computation of the round starts. @pre it has not started
  void begin(const assignment& given, shard_id at);
  /// Progress of local rounds. Returns the shards of known rounds.
  [[nodiscard]] std::vector<shard_id> take(const wave_report& from_here);
  /// True if the local round has ended, or is not computed locally.
  [[nodiscard]] bool is_over(assignment_id id) const;
  /// Local failure of the round; null if there is none.
  [[nodiscard]] const round_failure* failure_of(assignment_id id) const;
  void forget(assignment_id id) { rounds_.erase(id); }

private:
  struct round_here {
    assignment given{};
    shard_id at{};
    std::vector<std::vector<issued_job>> stages{};
    std::optional<finished_round> finished{};
    std::optional<round_failure> failed{};
    [[nodiscard]] bool is_over() const { return finished || failed; }
  };
  /// Task of the broadcast and of the client, whether it observes, whether the round is the last of its task; stage,
  /// jobs.
  using place_of_answer = std::array<std::int64_t, 4>;
  using kind_of_stage = std::array<std::int64_t, 6>;
  struct result_form;

  [[nodiscard]] const round_here* awaited(assignment_id id, report_verdict& verdict) const;
  [[nodiscard]] std::string wrong_with_jobs(std::span<const issued_job> jobs, const assignment& given,
                                            report_verdict& verdict);
  /// Result of a round, and its number of stages.
  struct ended_round {
    const assignment& given;
    std::uint32_t stages = 0;
  };
  [[nodiscard]] std::string wrong_with_result(const finished_round& finished, const ended_round& round,
                                              report_verdict& verdict);
  [[nodiscard]] std::string wrong_with_failure(const round_failure& failure, report_verdict& verdict) const;
  [[nodiscard]] std::string wrong_with_values(const finished_round& finished, const assignment& given) const;
  [[nodiscard]] std::string differences(const finished_round& finished, const ended_round& round,
                                        const round_here& here, report_verdict& verdict);
  [[nodiscard]] bool is_plain(const finished_round& finished, const ended_round& round) const;
  [[nodiscard]] result_form form_of(const finished_round& finished, const ended_round& round) const;
  [[nodiscard]] std::int64_t own_rows(const assignment& given) const;
  [[nodiscard]] bool is_interrupted() const { return run_->interrupts && run_->interrupts->load() > 0; }

  run_context_ref run_;
  std::uint64_t secret_;
  std::map<assignment_id, round_here> rounds_; // rounds computed locally
  known_forms<kind_of_stage> stages_;          // by rows of jobs, relative to the client's rows
  known_forms<std::string> results_;
};

} // namespace mneme
