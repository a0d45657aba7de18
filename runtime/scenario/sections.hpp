/// sections_of: every section of a scenario with its keys, bound to a scenario's members.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

struct section {
  std::string name{}; ///< "" for the keys above all sections.
  std::string meaning{};
  key_table keys{};
};

/// In the order of the resolved scenario; [model] and [strategy] end with the keys of
/// `model.kind` and `strategy.method` where these exist. `into` must outlive the sections.
[[nodiscard]] std::vector<section> sections_of(scenario& into);

/// A word of `partition.kind`, and what it does.
struct partition_word {
  std::string word{};
  partition_kind kind{};
  std::string meaning{};
};
[[nodiscard]] const std::vector<partition_word>& partition_words();

/// The sections that say what the simulated world is like: data, tasks, partition, clients, enrolment, rounds, devices.
[[nodiscard]] std::vector<section> federation_sections(scenario& into);

} // namespace mneme
