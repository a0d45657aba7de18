/// doctor: report on this machine and on whether it computes equal bits.
#pragma once
#include "runtime/training/bit_reproducibility.hpp"
#include "tools/cli/doctor_facts.hpp"
namespace mneme {

/// Content of `mneme doctor`.
struct doctor_report {
  std::vector<std::pair<std::string, machine_info>> groups{}; ///< Facts with the title of their group.
  std::vector<reproducibility_check> bits{};
};

/// Inspects the machine and runs a short computation.
[[nodiscard]] doctor_report examine_machine();

/// Formats the groups with titles, the checks, and a last line with the conclusion.
[[nodiscard]] std::string text_of(const doctor_report& report);
/// Formats one JSON object: each group of facts, then "equal_bits" with the checks, then "healthy".
[[nodiscard]] std::string json_of(const doctor_report& report);
/// Returns exit_done, or exit_failed if a check has failed.
[[nodiscard]] int exit_code_of(const doctor_report& report);

} // namespace mneme
