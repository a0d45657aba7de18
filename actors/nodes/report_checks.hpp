/// report_checks: what reports of nodes say, compared with what was asked and with what this process computes itself.
#pragma once
#include "actors/nodes/known_forms.hpp"
#include "actors/protocol/run_context.hpp"
#include "runtime/federation/shard_journal.hpp"
#include <array>
namespace mneme {

/// What is to be done with a report.
struct report_verdict {
  std::string wrong{};                  ///< Why it must not be taken; empty: it may.
  bool is_other_result = false;         ///< Nothing is wrong but its numbers, which this process finds to be others.
  bool has_unchecked = false;           ///< It has results that nobody has computed again.
  std::vector<assignment_id> awaited{}; ///< Rounds that this process computes first: then it is asked again.
};

/// Looks at reports of which the journal of their shard says that they come in their place. What clients ask for and
/// upload has forms that depend on the method, so they are learnt: a round whose answer has a form that is not known is
/// computed here as well, and so is a sample of all rounds, and each that is said to fail. A value without actors.
class report_checks {
public:
  /// @param secret decides which rounds are in the sample: nodes must not know it, and no result depends on it
  report_checks(run_context_ref run, std::uint64_t secret);

  [[nodiscard]] report_verdict judge(const wave_report& report, const shard_journal& journal);
  /// The round is in the sample.
  [[nodiscard]] bool samples(assignment_id id) const;
  [[nodiscard]] bool has_begun(assignment_id id) const { return rounds_.contains(id); }
  /// This process computes the round. @pre it has not begun
  void begin(const assignment& given, shard_id at);
  /// It has come so far with the rounds that it names. Answers with the shards of rounds that it knew.
  [[nodiscard]] std::vector<shard_id> take(const wave_report& from_here);
  /// It has come to the end of the round, or does not compute it.
  [[nodiscard]] bool is_over(assignment_id id) const;
  /// How it fails here; null: it does not.
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
  /// Task of the broadcast and of the client, whether it looks, whether the round is its task's last; stage, jobs.
  using place_of_answer = std::array<std::int64_t, 4>;
  using kind_of_stage = std::array<std::int64_t, 6>;
  struct result_form;

  [[nodiscard]] const round_here* awaited(assignment_id id, report_verdict& verdict) const;
  [[nodiscard]] std::string wrong_with_jobs(std::span<const issued_job> jobs, const assignment& given,
                                            report_verdict& verdict);
  /// What it ends, and after how many stages.
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
  std::map<assignment_id, round_here> rounds_; // that this process computes, or has computed
  known_forms<kind_of_stage> stages_;          // by rows of jobs, in parts of the client's own
  known_forms<std::string> results_;
};

} // namespace mneme
