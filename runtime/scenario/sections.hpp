/// sections_of: every section of a scenario with its keys, bound to the members of the scenario.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Condition under which a key is read.
struct key_condition {
  std::string key{};     ///< Without its section.
  bool holds = true;     ///< Value of the condition for the bound scenario when the sections were built.
  std::string readers{}; ///< "only rounds with a deadline"
};

/// A default that depends on other keys.
struct default_rule {
  std::string key{};             ///< Without its section.
  std::function<void()> apply{}; ///< Sets the member; called if the key is read and was not given.
};

/// The keys of a section, with optional conditions and default rules.
class section_keys : public key_table {
public:
  /// The last added key has no effect unless `holds`.
  void read_if(bool holds, std::string readers) { read_if(all().back().name, holds, std::move(readers)); }
  void read_if(std::string key, bool holds, std::string readers) {
    conditions_.push_back({std::move(key), holds, std::move(readers)});
  }
  /// Default of the last added key if the user does not give it. It is not applied to a key that is not read: the
  /// resolved scenario, read again, must not warn about that key.
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
  std::string details{}; ///< Sentences after the keys in `mneme help SECTION`; "": none.
};

/// Sections in the order of the resolved scenario. [model] and [strategy] end with the keys of `model.kind` and
/// `strategy.method` if these are set. `into` must outlive the sections.
[[nodiscard]] std::vector<section> sections_of(scenario& into);

/// A value of `partition.kind` and its description.
struct partition_word {
  std::string word{};
  partition_kind kind{};
  std::string meaning{};
};
[[nodiscard]] const std::vector<partition_word>& partition_words();

/// The sections that describe the simulated federation: data, tasks, partition, clients, enrolment, rounds, devices.
[[nodiscard]] std::vector<section> federation_sections(scenario& into);

} // namespace mneme
