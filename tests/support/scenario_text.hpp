/// scenario_text: scenarios of tests from named settings.
#pragma once
#include <string>
#include <utility>
#include <vector>
namespace mneme::test {

/// Keys as --set names them ("tasks.count") with TOML values; of a key given twice the last value holds.
using settings = std::vector<std::pair<std::string, std::string>>;

/// The settings as a scenario, section by section.
inline std::string scenario_text(const settings& given) {
  std::vector<std::pair<std::string, settings>> sections;
  for (const auto& [name, value] : given) {
    const auto dot = name.find('.');
    const auto section_name = name.substr(0, dot), key = name.substr(dot + 1);
    auto section = sections.begin();
    while (section != sections.end() && section->first != section_name)
      ++section;
    if (section == sections.end())
      section = sections.insert(section, {section_name, {}});
    std::erase_if(section->second, [&](const auto& earlier) { return earlier.first == key; });
    section->second.emplace_back(key, value);
  }
  std::string text;
  for (const auto& [name, keys] : sections) {
    text += "[" + name + "]\n";
    for (const auto& [key, value] : keys)
      text += key + " = " + value + "\n";
  }
  return text;
}

/// Four classes of made-up rows in two tasks, six clients, a net of one small layer: a run takes a tenth of a second.
/// @param given what differs, and the method
inline std::string small_scenario(const settings& given) {
  settings whole{{"data.name", "\"synthetic\""}, {"data.shape", "[16]"},  {"data.classes", "4"},
                 {"data.rows", "400"},           {"tasks.count", "2"},    {"clients.count", "6"},
                 {"rounds.per_task", "2"},       {"rounds.cohort", "3"},  {"model.name", "\"mlp\""},
                 {"model.hidden", "[16]"},       {"training.batch", "16"}};
  whole.insert(whole.end(), given.begin(), given.end());
  return scenario_text(whole);
}

} // namespace mneme::test
