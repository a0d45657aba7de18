/// scenario_text: builds scenarios key by key, and defines scenarios that several tests use.
#pragma once
#include <concepts>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>
namespace mneme::test {

/// TOML text of a value.
struct toml_value {
  std::string text{};
  toml_value(const char* words) : text('"' + std::string(words) + '"') {}
  toml_value(const std::string& words) : toml_value(words.c_str()) {}
  toml_value(bool yes) : text(yes ? "true" : "false") {}
  toml_value(std::integral auto number) : text(std::to_string(number)) {}
  toml_value(double number) : text(fmt::format("{}", number)) {
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      text += ".0"; // without a point it would be an integer
  }
};
/// TOML text that is written unchanged, for lists and tables.
inline toml_value raw_toml(const std::string& text) {
  toml_value made("");
  made.text = text;
  return made;
}

/// Sections and keys in the order of their first assignment. A test copies a shared scenario and changes some keys.
class scenario_text {
public:
  /// Sets a key by its dotted name, as --set does: "tasks.count".
  using keys = std::vector<std::pair<std::string, toml_value>>;
  scenario_text(const keys& given) { add(given); }

  /// Returns a copy with these keys added or replaced.
  [[nodiscard]] scenario_text with(const keys& given) const {
    auto made = *this;
    made.add(given);
    return made;
  }
  [[nodiscard]] scenario_text without(const std::string& name) const {
    auto made = *this;
    std::erase_if(made.keys_of(section_of(name)), [&](const auto& key) { return key.first == key_of(name); });
    return made;
  }
  /// Text of the scenario file.
  [[nodiscard]] std::string text() const {
    std::string made;
    for (const auto& [section, values] : sections_) {
      if (!section.empty())
        made += "[" + section + "]\n";
      for (const auto& [key, value] : values)
        made += key + " = " + value + "\n";
    }
    return made;
  }
  operator std::string() const { return text(); }

private:
  using texts = std::vector<std::pair<std::string, std::string>>;
  static std::string section_of(const std::string& name) {
    return name.find('.') == std::string::npos ? "" : name.substr(0, name.find('.'));
  }
  static std::string key_of(const std::string& name) { return name.substr(name.find('.') + 1); }

  template <class Entries>
  static auto& entry_of(Entries& entries, const std::string& name) {
    for (auto& [known, value] : entries)
      if (known == name)
        return value;
    return entries.emplace_back(name, typename Entries::value_type::second_type{}).second;
  }
  texts& keys_of(const std::string& section) { return entry_of(sections_, section); }
  void add(const keys& given) {
    for (const auto& [name, value] : given)
      entry_of(keys_of(section_of(name)), key_of(name)) = value.text;
  }

  std::vector<std::pair<std::string, texts>> sections_{{"", {}}}; // the top level comes first
};

/// Synthetic data and federated averaging, otherwise defaults.
inline scenario_text made_scenario(const scenario_text::keys& given) {
  return scenario_text({{"data.name", "synthetic"}, {"strategy.name", "fedavg"}}).with(given);
}

/// Four classes in two tasks, six clients, a small linear net: a run takes a tenth of a second.
inline scenario_text small_scenario(const scenario_text::keys& given) {
  return made_scenario({{"data.shape", raw_toml("[16]")},
                        {"data.classes", 4},
                        {"data.rows", 400},
                        {"tasks.count", 2},
                        {"clients.count", 6},
                        {"rounds.per_task", 2},
                        {"rounds.cohort", 3},
                        {"model.name", "mlp"},
                        {"model.hidden", raw_toml("[16]")},
                        {"training.batch", 16}})
      .with(given);
}

/// Contains everything that can change an order of events: drop-outs, a deadline, late uploads kept over rounds and
/// tasks, growing enrollment, clients of different sizes, several epochs.
inline scenario_text eventful_scenario() {
  return made_scenario({{"seed", 3},
                        {"data.shape", raw_toml("[12]")},
                        {"data.classes", 6},
                        {"data.rows", 900},
                        {"tasks.count", 3},
                        {"partition.kind", "dirichlet"},
                        {"partition.beta", 0.4},
                        {"clients.count", 20},
                        {"enrolment.kind", "growing"},
                        {"enrolment.initial", 12},
                        {"enrolment.added_per_task", 4},
                        {"rounds.per_task", 3},
                        {"rounds.cohort", 7},
                        {"rounds.deadline", "2 s"},
                        {"rounds.late", "keep"},
                        {"devices.rows_per_second", raw_toml("{ median = 60.0, sigma = 1.0 }")},
                        {"devices.dropout", 0.15},
                        {"model.name", "mlp"},
                        {"model.hidden", raw_toml("[16]")},
                        {"training.epochs", 3},
                        {"training.batch", 8},
                        {"training.momentum", 0.9}});
}

/// Clients enroll, leave, go offline, drop out during work, and change task one by one.
inline scenario_text restless_scenario() {
  return made_scenario({{"seed", 4},
                        {"data.shape", raw_toml("[6]")},
                        {"data.classes", 6},
                        {"data.rows", 1200},
                        {"tasks.count", 3},
                        {"tasks.transition", "staggered"},
                        {"tasks.transition_spread", "4 s"},
                        {"partition.kind", "dirichlet"},
                        {"clients.count", 60},
                        {"enrolment.kind", "random"},
                        {"enrolment.arrival_mean", "2 s"},
                        {"enrolment.lifetime_mean", "5 s"},
                        {"enrolment.absence_mean", "1 s"},
                        {"rounds.per_task", 12},
                        {"rounds.buffer", 5},
                        {"rounds.concurrency", 12},
                        {"devices.rows_per_second", raw_toml("{ median = 20.0, sigma = 1.0 }")},
                        {"devices.dropout", 0.1},
                        {"devices.availability", "diurnal"},
                        {"devices.availability_period", "6 s"},
                        {"model.name", "mlp"},
                        {"model.hidden", raw_toml("[8]")},
                        {"training.epochs", 2},
                        {"training.batch", 8}});
}

} // namespace mneme::test
