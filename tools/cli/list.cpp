#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/scenario/device_profiles.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/sections.hpp"
#include "tools/cli/component_keys.hpp"
#include "tools/cli/messages.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Entry of a list. `keys` are the keys of a method or model with their defaults.
struct listed {
  std::string name{}, summary{}, keys{};
};

template <class Entries>
std::vector<listed> with_keys(const Entries& entries) {
  std::vector<listed> rows;
  for_own_keys(entries, [&](const auto& entry, const key_table& own) {
    std::string text;
    for (const auto& key : own.all())
      text += (text.empty() ? "`" : ", `") + key.name + " = " + key.default_text + "`";
    rows.push_back({entry.name, entry.summary, text});
  });
  return rows;
}

std::vector<listed> datasets() {
  std::vector<listed> rows;
  for (const auto& source : data_sources())
    rows.push_back({source.name, source.summary});
  return rows;
}

std::vector<listed> partitions() {
  std::vector<listed> rows;
  for (const auto& word : partition_words())
    rows.push_back({word.word, word.meaning});
  return rows;
}

/// Scenario files in ./scenarios by path, each with its title, or the title of its base.
std::vector<listed> scenarios() {
  namespace fs = std::filesystem;
  std::vector<listed> rows;
  std::error_code failed;
  for (fs::recursive_directory_iterator at("scenarios", failed), end; !failed && at != end; at.increment(failed))
    if (at->path().filename() == "devices" && at->is_directory(failed)) // this folder contains device profiles, not
                                                                        // scenarios
      at.disable_recursion_pending();
    else if (at->path().extension() == ".toml" && at->is_regular_file(failed))
      rows.push_back({at->path().string(), title_of(at->path())});
  std::sort(rows.begin(), rows.end(), [](const listed& a, const listed& b) { return a.name < b.name; });
  return rows;
}

std::vector<listed> devices() {
  std::vector<listed> rows;
  std::vector<scenario_error> ignored; // built-in profiles have no problems
  for (const auto& entry : device_catalogue()) {
    const auto profile = profile_of_text(entry.name, entry.text, ignored);
    rows.push_back({entry.name, profile.title + (profile.link ? " (links)" : "")});
  }
  return rows;
}

std::vector<listed> rows_of(const std::string& text) {
  if (text == "strategies")
    return with_keys(strategies());
  if (text == "models")
    return with_keys(models());
  if (text == "devices")
    return devices();
  if (text == "datasets")
    return datasets();
  return text == "partitions" ? partitions() : scenarios();
}

void print(const std::vector<listed>& rows) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const auto& row : rows)
    columns.emplace_back(row.name, row.summary);
  print_columns(columns);
}

std::string cell(std::string text) {
  for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.replace(at, 1, "\\|");
  return text;
}

void print_markdown(const std::string& text, const std::vector<listed>& rows) {
  const bool keys = text != "datasets";
  std::printf("| name | description |%s\n|---|---|%s\n", keys ? " own keys |" : "", keys ? "---|" : "");
  for (const auto& row : rows) {
    std::printf("| `%s` | %s |", row.name.c_str(), cell(row.summary).c_str());
    std::printf(keys ? " %s |\n" : "%s\n", cell(row.keys).c_str());
  }
}

} // namespace

const std::vector<std::string>& listed_things() {
  static const std::vector<std::string> things{"strategies", "models",    "datasets", "partitions",
                                               "devices",    "scenarios", "runs"};
  return things;
}

int list_things(const list_arguments& arguments) {
  const auto& text = arguments.listed;
  const bool markdown = arguments.markdown;
  const auto& names = listed_things();
  if (!text.empty() && std::find(names.begin(), names.end(), text) == names.end())
    return unknown_word("list", text, names);
  if (markdown && text != "strategies" && text != "models" && text != "datasets")
    return bad_input("--markdown prints one table; expected mneme list --markdown strategies, models or datasets");
  if (text != "runs" && (!arguments.where.empty() || !arguments.folder.empty()))
    return bad_input("--where and --in select runs; expected mneme list runs");
  if (text == "runs")
    return list_runs(arguments);
  if (markdown) {
    print_markdown(text, rows_of(text));
    return exit_done;
  }
  for (const auto& name : names) {
    if (name == "runs" || (!text.empty() && name != text))
      continue;
    if (text.empty())
      std::printf("%s%s:\n", name == names.front() ? "" : "\n", name.c_str());
    print(rows_of(name));
  }
  return exit_done;
}

} // namespace mneme
