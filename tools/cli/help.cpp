#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/scenario/sections.hpp"
#include "tools/cli/component_keys.hpp"
#include "tools/cli/messages.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

/// Prints a key: "  cohort = 10", its legal values and its meaning.
void print_key(const key& option, const std::string& lead = "") {
  std::printf("  %s%s = %s\n      %s. %s\n", lead.c_str(), option.name.c_str(), option.default_text.c_str(),
              expected_text(option).c_str(), option.meaning.c_str());
}

void print_section(const section& group) {
  if (group.name.empty())
    std::printf("%s\n\n", group.meaning.c_str());
  else
    std::printf("[%s]\n%s\n\n", group.name.c_str(), group.meaning.c_str());
  for (const auto& key : group.keys.all())
    print_key(key);
  if (!group.details.empty())
    std::printf("\n%s\n", group.details.c_str());
}

/// Prints a method or model: its summary and its keys.
template <class Entry>
void print_entry(const Entry& entry, const char* kind, const char* section) {
  std::printf("%s \"%s\": %s\n\n", kind, entry.name.c_str(), entry.summary.c_str());
  const auto item = entry.make(); // must outlive the table, whose keys are bound to its members
  key_table own;
  item->keys(own);
  if (own.all().empty())
    std::printf("It has no keys in [%s].\n", section);
  else
    std::printf("Its keys in [%s]:\n\n", section);
  for (const auto& key : own.all())
    print_key(key);
  if constexpr (std::is_same_v<Entry, strategy_entry>)
    for (const auto& preset : item->presets())
      std::printf("\npreset = \"%s\": %s\n%s", preset.name.c_str(), preset.meaning.c_str(), preset.toml.c_str());
}

template <class Entries>
bool print_entry_named(const Entries& entries, const std::string& name, const char* kind, const char* section) {
  for (const auto& entry : entries)
    if (entry.name == name) {
      print_entry(entry, kind, section);
      return true;
    }
  return false;
}

void print_overview(const std::vector<section>& sections) {
  std::printf("\nA scenario is a TOML file. `extends = \"../base/x.toml\"` (or a list) reads base files first. Paths "
              "are\nrelative to the file that contains them. Keys that are not given have defaults. %s\n\n",
              sections.front().meaning.c_str());
  for (const auto& key : sections.front().keys.all())
    print_key(key);
  std::printf("\nSections:\n");
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& group : sections)
    if (!group.name.empty())
      rows.emplace_back(group.name, group.meaning);
  print_columns(rows);
  std::printf("\nUse mneme help SECTION, STRATEGY, MODEL or KEY for details, and mneme list for an overview.\n");
}

/// Prints keys of methods or models by name: "length" or "strategy.length". A key is printed once for all owners that
/// share it.
template <class Entries>
bool print_own_keys_named(const Entries& entries, const std::string& name, const char* kind,
                          const std::string& section) {
  std::vector<std::pair<key, std::string>> printed; // key and owners
  for_own_keys(entries, [&](const auto& entry, const key_table& own) {
    for (const auto& key : own.all()) {
      if (key.name != name && section + "." + key.name != name)
        continue;
      const auto same = std::find_if(printed.begin(), printed.end(), [&](const auto& other) {
        return other.first.default_text == key.default_text && other.first.meaning == key.meaning &&
               expected_text(other.first) == expected_text(key);
      });
      if (same == printed.end())
        printed.emplace_back(key, entry.name);
      else
        same->second += ", " + entry.name;
    }
  });
  for (const auto& [key, owners] : printed) {
    print_key(key, section + ".");
    std::printf("      A key of %s %s.\n", kind, owners.c_str());
  }
  return !printed.empty();
}

/// Adds the keys of methods or models to the candidates for suggestions.
template <class Entries>
void add_own_keys(const Entries& entries, const std::string& section, std::vector<std::string>& known) {
  for_own_keys(entries, [&](const auto&, const key_table& own) {
    for (const auto& key : own.all()) {
      known.push_back(key.name);
      known.push_back(section + "." + key.name);
    }
  });
}

/// Prints all keys with this name, such as "cohort" or "rounds.cohort". Returns false if there is none.
bool print_keys_named(const std::vector<section>& sections, const std::string& name) {
  bool found = false;
  for (const auto& group : sections)
    for (const auto& key : group.keys.all())
      if (const auto lead = group.name.empty() ? "" : group.name + "."; key.name == name || lead + key.name == name) {
        print_key(key, lead);
        found = true;
      }
  return found;
}

/// Prints the keys that used to have this name, such as "staying_share" or "tasks.staying_share", and their present
/// names.
bool print_renamed_keys(const std::vector<section>& sections, const std::string& name) {
  bool found = false;
  for (const auto& entry : renamed_keys()) {
    if (entry.old_name == entry.name || (entry.old_name != name && full_old_name(entry) != name))
      continue;
    const auto of_methods = entry.methods.empty() ? "" : fmt::format(" of {}", fmt::join(entry.methods, ", "));
    std::printf("%s\n\n", deprecation_text(full_old_name(entry) + of_methods, full_new_name(entry)).c_str());
    print_keys_named(sections, full_new_name(entry));
    print_own_keys_named(strategies(), full_new_name(entry), "strategy", "strategy");
    found = true;
  }
  return found;
}

} // namespace

int explain(const std::string& topic, const std::vector<std::string>& commands) {
  scenario defaults;
  const auto sections = sections_of(defaults);
  if (topic.empty()) {
    print_overview(sections);
    return exit_done;
  }
  auto known = commands;
  for (const auto& section : sections) {
    if (!section.name.empty() && section.name == topic) {
      print_section(section);
      return exit_done;
    }
    if (!section.name.empty())
      known.push_back(section.name);
  }
  const bool method = print_entry_named(strategies(), topic, "strategy", "strategy");
  const bool net = print_entry_named(models(), topic, "model", "model");
  const bool key = print_keys_named(sections, topic);
  const bool methods_key = print_own_keys_named(strategies(), topic, "strategy", "strategy");
  const bool models_key = print_own_keys_named(models(), topic, "model", "model");
  const bool old_key = print_renamed_keys(sections, topic);
  if (method || net || key || methods_key || models_key || old_key)
    return exit_done;
  for (const auto& entry : strategies())
    known.push_back(entry.name);
  for (const auto& entry : models())
    known.push_back(entry.name);
  for (const auto& section : sections)
    for (const auto& key : section.keys.all()) {
      known.push_back(key.name);
      if (!section.name.empty())
        known.push_back(section.name + "." + key.name);
    }
  add_own_keys(strategies(), "strategy", known);
  add_own_keys(models(), "model", known);
  const auto meant = closest_match(topic, known);
  return bad_input("unknown topic '" + topic + "'; " +
                   (meant.empty()
                        ? "expected a command, a section, a strategy, a model or a key; see mneme help and mneme list"
                        : "did you mean '" + meant + "'?"));
}

} // namespace mneme
