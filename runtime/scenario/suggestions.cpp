#include "runtime/scenario/suggestions.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/units.hpp"
namespace mneme {
namespace {

constexpr std::size_t letters_min = 5; // shorter words are near to too many keys of other sections

std::vector<std::string> names_in(const section& one) {
  std::vector<std::string> names;
  for (const auto& key : one.keys.all())
    names.push_back(key.name);
  return names;
}

/// "[rounds] cohort", or 'title' for a key above all sections.
std::string shown_key(const section& of, const std::string& key) {
  return of.name.empty() ? "'" + key + "' above all sections" : "[" + of.name + "] " + key;
}

/// The key of this name, or nearly so, in another section; "" if there is none.
std::string elsewhere(const std::string& key, const section& in, const std::vector<section>& all, bool exact) {
  for (const auto& other : all) {
    if (other.name == in.name)
      continue;
    const auto meant = exact ? (other.keys.find(key) ? key : "") : nearest(key, names_in(other));
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
    const auto one = entry.make(); // the table is bound to its members
    key_table own;
    one->keys(own);
    if (own.find(key))
      owners.push_back(entry.name);
  }
  return owners;
}

} // namespace

std::string unknown_key_text(const std::string& key, const section& in, const std::vector<section>& all) {
  auto text = "unknown key '" + key + "'" + (in.name.empty() ? " above all sections" : " in [" + in.name + "]") + "; ";
  if (const auto other = elsewhere(key, in, all, true); !other.empty())
    return text + "did you mean " + other + "?";
  if (const auto meant = nearest(key, names_in(in)); !meant.empty())
    return text + "did you mean '" + meant + "'?";
  if (const auto other = key.size() < letters_min ? "" : elsewhere(key, in, all, false); !other.empty())
    return text + "did you mean " + other + "?";
  return text + expected_names(names_in(in));
}

std::string unknown_section_text(const std::string& name, const std::vector<section>& all) {
  std::vector<std::string> names;
  for (const auto& one : all)
    if (!one.name.empty())
      names.push_back(one.name);
  const auto meant = nearest(name, names);
  return "unknown section [" + name + "]; " + (meant.empty() ? expected_names(names) : "did you mean [" + meant + "]?");
}

std::vector<std::string> owners_of(const std::string& key, const std::string& section) {
  return section == "model" ? owners_among(models(), key) : owners_among(strategies(), key);
}

} // namespace mneme
