/// doctor: a report on this machine, and what can be said of equal bits on it.
#pragma once
#include "runtime/training/equal_bits.hpp"
#include "tools/cli/doctor_facts.hpp"
namespace mneme {

/// All that `mneme doctor` says.
struct doctor_report {
  std::vector<std::pair<std::string, machine_facts>> groups{}; ///< By title.
  std::vector<bits_finding> bits{};
};

/// Looks at the machine and lets it compute for a moment.
[[nodiscard]] doctor_report examine_machine();

/// Titles, facts, answers, and a last line that says what follows from them.
[[nodiscard]] std::string text_of(const doctor_report& report);
/// One object: a group of facts each, then "equal_bits" with the answers, then "healthy".
[[nodiscard]] std::string json_of(const doctor_report& report);
/// exit_done, or exit_failed where some answer is no.
[[nodiscard]] int exit_code_of(const doctor_report& report);

} // namespace mneme
