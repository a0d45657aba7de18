/// sections: the sections of a scenario with their keys, which are bound to the scenario's members.
#pragma once
#include "runtime/settings/scenario.hpp"
namespace mneme {

/// Condition under which a key has an effect.
struct key_condition {
  std::string key{};     ///< Name without section.
  bool holds = true;     ///< True: the condition holds for the bound scenario at present.
  std::string readers{}; ///< For messages: "only rounds with a deadline".
};

/// A default that depends on other keys.
struct default_rule {
  std::string key{};             ///< Name without section.
  std::function<void()> apply{}; ///< Sets the member. Called if the key has an effect and was not given.
};

/// The keys of a section, some with conditions or default rules.
class section_keys : public key_table {
public:
  /// Declares that the last added key has an effect only if `holds`. @param readers for messages
  void used_if(bool holds, std::string readers) { used_if(all().back().name, holds, std::move(readers)); }
  /// Declares that `key` has an effect only if `holds`.
  void used_if(std::string key, bool holds, std::string readers) {
    conditions_.push_back({std::move(key), holds, std::move(readers)});
  }
  /// Sets the default rule of the last added key. The rule is not applied to a key without effect: otherwise, reading
  /// the resolved scenario would give a warning.
  void default_from(std::function<void()> apply) { rules_.push_back({all().back().name, std::move(apply)}); }
  [[nodiscard]] const std::vector<key_condition>& conditions() const noexcept { return conditions_; }
  [[nodiscard]] const std::vector<default_rule>& rules() const noexcept { return rules_; }

private:
  std::vector<key_condition> conditions_;
  std::vector<default_rule> rules_;
};

struct section {
  std::string name{}; ///< "" for the keys before the first section.
  std::string meaning{};
  section_keys keys{};
  std::string details{}; ///< Sentences after the keys in `mneme help SECTION`; may be empty.
};

/// The sections in the order of the resolved scenario. [model] and [strategy] end with the keys of `model.kind` and
/// `strategy.method`, if set. @param into must outlive the sections
[[nodiscard]] std::vector<section> sections_of(scenario& into);

/// A value of `partition.kind`, and its description.
struct partition_word {
  std::string word{};
  partition_kind kind{};
  std::string meaning{};
};
/// All values of `partition.kind`.
[[nodiscard]] const std::vector<partition_word>& partition_words();

/// Adds the keys of simulated attackers to [clients].
void attack_keys(section_keys& keys, clients_section& to);
/// Sections of the steps between a client's upload and the server's fold: uploads, aggregation.
[[nodiscard]] std::vector<section> upload_sections(scenario& into);
/// Sections of the simulated federation: data, tasks, partition, clients, enrolment, rounds, devices, uploads,
/// aggregation.
[[nodiscard]] std::vector<section> federation_sections(scenario& into);

} // namespace mneme
