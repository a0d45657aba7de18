/// scenario_text: a scenario of a test, built key by key, and the scenarios that several tests run.
#pragma once
#include <concepts>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>
#include <vector>
namespace mneme::test {

/// What stands behind the = of a key.
struct toml_value {
  std::string text{};
  toml_value(const char* words) : text('"' + std::string(words) + '"') {}
  toml_value(const std::string& words) : toml_value(words.c_str()) {}
  toml_value(bool yes) : text(yes ? "true" : "false") {}
  toml_value(std::integral auto number) : text(std::to_string(number)) {}
  toml_value(double number) : text(fmt::format("{}", number)) {
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      text += ".0"; // a whole number would be an integer
  }
};
/// Lists and tables.
inline toml_value raw_toml(const std::string& text) {
  toml_value made("");
  made.text = text;
  return made;
}

/// Keys by their dotted names. A test starts from a scenario that others share and says what is its own.
class scenario_text {
public:
  using keys = std::vector<std::pair<std::string, toml_value>>;
  scenario_text(const keys& given) { add(given); }

  /// A copy in which these keys are added or replaced.
  [[nodiscard]] scenario_text with(const keys& given) const {
    auto made = *this;
    made.add(given);
    return made;
  }
  [[nodiscard]] scenario_text without(const std::string& key) const {
    auto made = *this;
    made.sections_.at(key.substr(0, key.find('.'))).erase(key.substr(key.find('.') + 1));
    return made;
  }
  /// As a file holds it.
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
  void add(const keys& given) {
    for (const auto& [name, value] : given) {
      const auto point = name.find('.');
      const bool top = point == std::string::npos;
      sections_[top ? "" : name.substr(0, point)][top ? name : name.substr(point + 1)] = value.text;
    }
  }

  std::map<std::string, std::map<std::string, std::string>> sections_; // the top level comes first
};

/// Made rows, federated averaging, all else as it is by default.
inline scenario_text made_scenario(const scenario_text::keys& given) {
  return scenario_text({{"data.name", "synthetic"}, {"strategy.name", "fedavg"}}).with(given);
}

/// Everything that can disturb an order happens: drop-outs, a deadline, late uploads that are kept over rounds and
/// tasks, growing enrolment, ragged clients, several epochs.
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

/// Clients come, go, sleep, drop out at work and change task one by one.
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

/// Keys by their dotted names with TOML values, as --set takes them; where a key is given twice, the last value holds.
using settings = std::vector<std::pair<std::string, std::string>>;

/// Four classes of made-up rows in two tasks, six clients, a net of one small layer: a run takes a tenth of a second.
/// @param given what differs, and the method
inline std::string small_scenario(const settings& given) {
  scenario_text::keys keys{{"data.name", "synthetic"}, {"data.shape", raw_toml("[16]")}, {"data.classes", 4},
                           {"data.rows", 400},         {"tasks.count", 2},               {"clients.count", 6},
                           {"rounds.per_task", 2},     {"rounds.cohort", 3},             {"model.name", "mlp"},
                           {"training.batch", 16},     {"model.hidden", raw_toml("[16]")}};
  for (const auto& [name, value] : given)
    keys.emplace_back(name, raw_toml(value));
  return scenario_text(keys).text();
}

} // namespace mneme::test
