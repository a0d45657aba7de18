#include "runtime/base/digest.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/scenario/sections.hpp"
#include "runtime/settings/device_profile.hpp"
namespace mneme {
namespace {

/// Formats the lines that `line` returns for the keys, in section order. Keys for which it returns "" are omitted.
template <class Line>
std::string written(scenario settings, Line line) {
  std::string text;
  for (const auto& section : sections_of(settings)) {
    std::string lines;
    for (const auto& key : section.keys.all())
      lines += line(section.name, key);
    if (!lines.empty() && !section.name.empty())
      text += (text.empty() ? "[" : "\n[") + section.name + "]\n";
    text += lines;
  }
  return text;
}

/// Digest of a file's content, independent of its path.
std::string content_text(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_regular_file(path, failed) ? quote_text(hex_text(digest_of_file(path.string()))) : "\"\"";
}

/// Digest of another scenario, independent of its path and of the files that it extends.
std::string scenario_text(const std::filesystem::path& file) {
  if (file.empty())
    return {};
  auto read = read_scenario(file, {});
  if (!read)
    return quote_text("");
  read->value.model.backbone.clear(); // not hashed, because this key could refer to the same scenario
  return quote_text(scenario_digest(read->value));
}

/// Represents profiles by their texts instead of their names.
std::string profiles_text(const devices_section& devices) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < devices.profiles_read.size(); ++i)
    parts.push_back(devices.profiles_read[i]->content + " " + number_text(devices.profiles.at(i).share));
  return bracket_text(word_list(parts));
}

/// Default of every key ("section.key"), including the keys of the scenario's method and model.
std::map<std::string, std::string> default_texts(const scenario& settings) {
  scenario usual;
  for (const auto& entry : strategies())
    if (entry.name == settings.strategy.name)
      usual.strategy.method = entry.make();
  for (const auto& entry : models())
    if (entry.name == settings.model.name)
      usual.model.kind = entry.make();
  std::map<std::string, std::string> texts;
  for (const auto& group : sections_of(usual))
    for (const auto& key : group.keys.all())
      texts[group.name + "." + key.name] = current_text(key);
  return texts;
}

/// Digest of the user's data. Keys that locate the data are omitted.
std::string digested_place(const data_section& data, const std::string& name) {
  if (name != "file")
    return {};
  const auto content = user_data_digest(data);
  return content.empty() ? content : quote_text(content);
}

/// @param renamed entry of the key; null if it was not renamed
std::string digested_text(const scenario& settings, const std::string& section, const key& option,
                          const renamed_key* renamed) {
  if (section == "devices" && option.name == "profiles")
    return profiles_text(settings.devices);
  if (section == "model" && option.name == "backbone")
    return scenario_text(**std::get_if<std::filesystem::path*>(&option.target));
  if (section == "worker" || section == "checkpoint" || (section.empty() && option.name == "title") ||
      (section == "data" && option.name == "root"))
    return {};
  if (section == "data" && (option.name == "file" || option.name == "folder"))
    return digested_place(settings.data, option.name);
  if (const auto* path = std::get_if<std::filesystem::path*>(&option.target))
    return content_text(**path);
  return renamed && option.current ? quote_text(std::string(renamed->old_word(option.current())))
                                   : current_text(option);
}

/// The line that the digest hashes for a key. For a renamed key the line has the old name, so that no digest changes.
std::string digested_line(const scenario& settings, const std::string& section, const key& option) {
  const auto* const renamed = find_renamed(section, option.name, settings.strategy.name);
  const auto text = digested_text(settings, section, option, renamed);
  return text.empty() ? text : (renamed ? std::string(renamed->old_name) : option.name) + " = " + text + "\n";
}

} // namespace

std::string resolved_text(const scenario& settings) {
  return written(settings, [](const std::string&, const key& option) {
    return option.name + " = " + current_text(option) + "\n";
  });
}

std::string scenario_digest(const scenario& settings) {
  const auto defaults = default_texts(settings);
  const auto text = written(settings, [&](const std::string& section, const key& option) {
    const auto usual = option.omits_default ? defaults.find(section + "." + option.name) : defaults.end();
    if (usual != defaults.end() && usual->second == current_text(option))
      return std::string{};
    return digested_line(settings, section, option);
  });
  return hex_text(digest_of(std::as_bytes(std::span(text))));
}

} // namespace mneme
