/// sections_of: every section of a scenario with its keys, bound to a scenario's members.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// When something reads a key that some scenarios do not need.
struct key_condition {
  std::string key{};     ///< Without its section.
  bool holds = true;     ///< In the scenario to which the keys are bound, as it was then.
  std::string readers{}; ///< "only rounds with a deadline"
};

/// A default that follows from other keys.
struct default_rule {
  std::string key{};             ///< Without its section.
  std::function<void()> apply{}; ///< Sets what the key is bound to, where the key is read and nobody has given it.
};

/// The keys of a section, each with its condition and the rule of its default, if it has them.
class section_keys : public key_table {
public:
  /// The key that was added last has no effect unless `holds`.
  void read_if(bool holds, std::string readers) { read_if(all().back().name, holds, std::move(readers)); }
  void read_if(std::string key, bool holds, std::string readers) {
    conditions_.push_back({std::move(key), holds, std::move(readers)});
  }
  /// The key that was added last has this default where nobody has given it. A rule leaves a key that is not read as it
  /// is: the resolved scenario, read again, must not warn of it.
  void unless_given(std::function<void()> apply) { rules_.push_back({all().back().name, std::move(apply)}); }
  [[nodiscard]] const std::vector<key_condition>& conditions() const noexcept { return conditions_; }
  [[nodiscard]] const std::vector<default_rule>& rules() const noexcept { return rules_; }

private:
  std::vector<key_condition> conditions_;
  std::vector<default_rule> rules_;
};

struct section {
  std::string name{}; ///< "" for the keys above all sections.
  std::string meaning{};
  section_keys keys{};
  std::string details{}; ///< Sentences behind the keys in `mneme help SECTION`; "": none.
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
