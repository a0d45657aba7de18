#include "runtime/scenario/suggestions.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/unit_text.hpp"
#include <map>
namespace mneme {
namespace {

/// Removed keys, each with a sentence that names its replacement.
const std::map<std::string, std::string> removed_keys{
    {"worker.node_answer",
     "nodes are trusted to answer, and one without a heartbeat is lost after worker.node_timeout; "
     "worker.join_timeout limits the wait for nodes"}};

constexpr std::size_t letters_min = 5; // shorter words are similar to too many keys

std::vector<std::string> names_in(const section& group) {
  std::vector<std::string> names;
  for (const auto& key : group.keys.all())
    names.push_back(key.name);
  return names;
}

/// Formats a key: "[rounds] cohort", or 'title' for a key before the first section.
std::string shown_key(const section& group, const std::string& key) {
  return group.name.empty() ? "'" + key + "' outside all sections" : "[" + group.name + "] " + key;
}

/// Finds a key of another section with this name, or with a similar name unless `exact` is set. Returns "" if there is
/// none.
std::string elsewhere(const std::string& key, const section& in, const std::vector<section>& sections, bool exact) {
  for (const auto& other : sections) {
    if (other.name == in.name)
      continue;
    const auto meant = exact ? (other.keys.find(key) ? key : "") : closest_match(key, names_in(other));
    if (!meant.empty())
      return shown_key(other, meant);
  }
  return {};
}

std::string expected_names(const std::vector<std::string>& names) {
  return (names.size() == 1 ? "expected " : "expected one of ") +
         joined(names, [](const std::string& name) { return name; });
}

template <class Entries>
std::vector<std::string> owners_among(const Entries& entries, const std::string& key) {
  std::vector<std::string> owners;
  for (const auto& entry : entries) {
    const auto item = entry.make(); // must outlive the table with keys bound to its members
    key_table own;
    item->keys(own);
    if (own.find(key))
      owners.push_back(entry.name);
  }
  return owners;
}

} // namespace

std::string unknown_key_text(const std::string& key, const section& in, const std::vector<section>& sections) {
  if (const auto removed = removed_keys.find(in.name + "." + key); removed != removed_keys.end())
    return "key '" + removed->first + "' was removed: " + removed->second;
  auto text =
      "unknown key '" + key + "'" + (in.name.empty() ? " outside all sections" : " in [" + in.name + "]") + "; ";
  if (const auto other = elsewhere(key, in, sections, true); !other.empty())
    return text + "did you mean " + other + "?";
  if (const auto meant = closest_match(key, names_in(in)); !meant.empty())
    return text + "did you mean '" + meant + "'?";
  if (const auto other = key.size() < letters_min ? "" : elsewhere(key, in, sections, false); !other.empty())
    return text + "did you mean " + other + "?";
  return text + expected_names(names_in(in));
}

std::string unknown_section_text(const std::string& name, const std::vector<section>& sections) {
  std::vector<std::string> names;
  for (const auto& group : sections)
    if (!group.name.empty())
      names.push_back(group.name);
  const auto meant = closest_match(name, names);
  return "unknown section [" + name + "]; " + (meant.empty() ? expected_names(names) : "did you mean [" + meant + "]?");
}

std::vector<std::string> suggest_owners(const std::string& key, const std::string& section) {
  return section == "model" ? owners_among(models(), key) : owners_among(strategies(), key);
}

} // namespace mneme
