#include "runtime/scenario/rename_keys.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/options/unit_text.hpp"
#include <map>
namespace mneme {
namespace {

/// Moves the value to the new key, which gets the location of the old one.
void move_value(toml::table& section, std::string_view old_name, std::string_view name) {
  const auto entry = section.find(old_name);
  const toml::key key(name, toml::source_region(entry->first.source()));
  entry->second.visit([&](auto& node) {
    auto value = std::move(node);
    section.erase(old_name);
    section.insert(key, std::move(value));
  });
}

class key_renamer {
public:
  explicit key_renamer(std::span<scenario_layer> layers) : layers_(layers) {}

  void rename(const renamed_key& entry) {
    const auto new_places = places_of(entry); // found before the first old name is replaced
    for (auto& layer : layers_) {
      auto* const section = layer.values.get_as<toml::table>(entry.section);
      if (!section)
        continue;
      if (entry.old_name != entry.name && section->contains(entry.old_name))
        rename_key(layer, *section, entry, new_places);
      if (auto* const word = section->get_as<std::string>(entry.name))
        rename_word(layer, *word, entry);
    }
  }

  rename_findings take() { return std::move(findings_); }

private:
  using places_by_source = std::map<std::string, place>;

  /// Locations of the key's new name, by source.
  [[nodiscard]] places_by_source places_of(const renamed_key& entry) const {
    places_by_source places;
    for (const auto& layer : layers_)
      if (const auto* section = layer.values.get_as<toml::table>(entry.section))
        if (const auto key = section->find(entry.name); key != section->end())
          places[layer.source] = place_in(layer, key->first.source());
    return places;
  }

  void rename_key(const scenario_layer& layer, toml::table& section, const renamed_key& entry,
                  const places_by_source& new_places) {
    const auto at = place_in(layer, section.find(entry.old_name)->first.source());
    if (const auto other = new_places.find(layer.source); other != new_places.end()) {
      findings_.errors.push_back({at, full_old_name(entry) + " is the old name of " + full_new_name(entry) +
                                          ", which is set at " + place_text(other->second) +
                                          ", too; remove one of them"});
      section.erase(entry.old_name);
      return;
    }
    findings_.warnings.push_back({at, deprecation_text(full_old_name(entry), full_new_name(entry))});
    move_value(section, entry.old_name, entry.name);
  }

  void rename_word(const scenario_layer& layer, toml::value<std::string>& word, const renamed_key& entry) {
    const std::string new_word(entry.new_word(word.get()));
    if (new_word == word.get())
      return;
    findings_.warnings.push_back(
        {place_in(layer, word.source()),
         deprecation_text(full_new_name(entry) + " = " + quote_text(word.get()), quote_text(new_word))});
    word.get() = new_word;
  }

  std::span<scenario_layer> layers_;
  rename_findings findings_;
};

} // namespace

rename_findings rename_keys(std::span<scenario_layer> layers, const std::string& method) {
  key_renamer renamer(layers);
  for (const auto& entry : renamed_keys())
    if (entry.is_read_by(method))
      renamer.rename(entry);
  return renamer.take();
}

} // namespace mneme
