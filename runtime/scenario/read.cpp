#include "runtime/method/file_keys.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/options/deprecated_names.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/checks.hpp"
#include "runtime/scenario/device_profiles.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/rename_keys.hpp"
#include "runtime/scenario/sections.hpp"
#include "runtime/scenario/suggestions.hpp"
#include "runtime/scenario/values.hpp"
#include <algorithm>
#include <optional>
#include <set>
namespace mneme {
namespace {

std::string full_name(const std::string& section, std::string_view key) {
  return section.empty() ? std::string(key) : section + "." + std::string(key);
}

/// Creates the registered entry with this name. Returns null if there is none.
template <class Entries>
auto made(const Entries& entries, const std::string& name) -> decltype(entries.front().make()) {
  for (const auto& entry : entries)
    if (entry.name == name)
      return entry.make();
  return nullptr;
}

class scenario_reader {
public:
  expected<reading> read(const std::filesystem::path& file, const overrides& over) {
    value_.file = file.string();
    value_.name = file.stem().string();
    return read(read_layers(file, over));
  }

  expected<reading> read(layer_stack layers) {
    stack_ = std::move(layers);
    if (const auto sweep = sweep_among_layers())
      return tl::unexpected(diagnostics{*sweep});
    whole_ = stack_.problems.empty();
    problems_ = std::move(stack_.problems);
    replace_old_names(stack_.layers);
    add_method();
    choose_model();
    sections_ = sections_of(value_);
    apply_layers();
    if (whole_)
      check_whole();
    if (!problems_.empty())
      return tl::unexpected(sorted(problems_));
    return reading{.value = std::move(value_), .warnings = sorted(warnings_)};
  }

private:
  /// Error for a file with a [sweep] table, which is not a scenario. Returns nullopt if no layer has one.
  [[nodiscard]] std::optional<diagnostic> sweep_among_layers() const {
    for (const auto& from : stack_.layers)
      if (const auto* table = from.from_user && from.has_lines ? from.values.get_as<toml::table>("sweep") : nullptr)
        return diagnostic{place_text(place_in(from, table->source())),
                          "[sweep] makes this the grid of a sweep; expected a scenario, or mneme sweep " + from.source};
    return std::nullopt;
  }

  /// Text of a key in the layers before `end`, or `otherwise` if none sets it.
  [[nodiscard]] std::string said(const std::string& section, const char* key, std::string otherwise,
                                 std::size_t end) const {
    for (std::size_t i = 0; i < end; ++i)
      otherwise = stack_.layers[i].values[section][key].value_or(otherwise);
    return otherwise;
  }
  [[nodiscard]] std::string said(const std::string& section, const char* key, std::string otherwise) const {
    return said(section, key, std::move(otherwise), stack_.layers.size());
  }

  void replace_old_names(std::span<scenario_layer> layers) {
    auto found = rename_keys(layers, said("strategy", "name", value_.strategy.name));
    warnings_.insert(warnings_.end(), found.warnings.begin(), found.warnings.end());
    problems_.insert(problems_.end(), found.errors.begin(), found.errors.end());
  }

  /// Creates the method. The method's defaults become the lowest layer, and its preset becomes the next one.
  void add_method() {
    const auto name = said("strategy", "name", value_.strategy.name);
    value_.strategy.method = made(strategies(), name);
    if (!value_.strategy.method)
      return;
    add_preset(name);
    choose_words();
    const auto own = value_.strategy.method->needs().defaults;
    if (!own.empty())
      insert_lowest(parse_layer("defaults of " + quote_text(name), own, problems_));
  }

  void insert_lowest(scenario_layer lowest) {
    lowest.from_user = false;
    replace_old_names({&lowest, 1});
    stack_.layers.insert(stack_.layers.begin(), std::move(lowest));
  }

  /// Sets the method's keys whose values are words before all others, because its defaults may depend on them.
  void choose_words() {
    key_table keys;
    value_.strategy.method->keys(keys);
    for (const auto& key : keys.all())
      if (const auto word = said("strategy", key.name.c_str(), "");
          key.chosen && std::find(key.choices.begin(), key.choices.end(), word) != key.choices.end())
        key.chosen(word);
  }

  void add_preset(const std::string& name) {
    const auto preset_name = said("strategy", "preset", "");
    if (preset_name.empty())
      return;
    std::vector<std::string> names;
    for (const auto& preset : value_.strategy.method->presets()) {
      names.push_back(preset.name);
      if (preset.name != preset_name)
        continue;
      auto lowest =
          parse_layer("preset " + quote_text(preset_name) + " of " + quote_text(name), preset.toml, problems_);
      MNEME_CHECK(!lowest.values["strategy"]["name"], name, preset_name); // a preset must not select another method
      insert_lowest(std::move(lowest));
      return;
    }
    unknown_preset_ = "strategy.preset = " + quote_text(preset_name) + ": " + quote_text(name) +
                      (names.empty() ? " has no presets; remove the key" : " has the presets " + word_list(names));
    if (const auto meant = closest_match(preset_name, names); !meant.empty())
      unknown_preset_ += "; did you mean " + quote_text(meant) + "?";
  }

  void choose_model() { value_.model.kind = made(models(), said("model", "name", value_.model.name)); }

  void apply_layers() {
    std::size_t users_first = 0;
    while (users_first < stack_.layers.size() && !stack_.layers[users_first].from_user)
      ++users_first;
    for (std::size_t i = 0; i < stack_.layers.size(); ++i) {
      if (i == users_first)
        keep_defaults();
      apply(i);
    }
  }

  /// Records the values that keys have if the user does not set them, so that setting a default gives no warning.
  void keep_defaults() {
    for (const auto& section : sections_)
      for (const auto& key : section.keys.all())
        defaults_[full_name(section.name, key.name)] = current_text(key);
  }

  void apply(std::size_t layer_index) {
    const auto& from = stack_.layers[layer_index];
    for (const auto& [name, node] : from.values) {
      const std::string word(name.str());
      const auto at = place_in(from, name.source());
      if (word == "extends")
        continue;
      if (sections_.front().keys.find(word))
        apply_key(sections_.front(), name, node, layer_index);
      else if (auto* section = section_named(word); section && node.is_table())
        for (const auto& [key, value] : *node.as_table())
          apply_key(*section, key, value, layer_index);
      else if (section)
        problems_.push_back({at, word + ": expected one section, as in [" + word + "], found " + type_text(node)});
      else if (node.is_table())
        problems_.push_back({at, unknown_section_text(word, sections_)});
      else
        problems_.push_back({at, unknown_key_text(word, sections_.front(), sections_)});
    }
  }

  void apply_key(const section& group, const toml::key& key, const toml::node& node, std::size_t layer_index) {
    const auto& from = stack_.layers[layer_index];
    const auto name = full_name(group.name, key.str());
    const auto* bound = group.keys.find(key.str());
    if (!bound)
      return unknown_key(group, std::string(key.str()), place_in(from, key.source()), layer_index);
    const auto at = place_in(from, node.source());
    places_[name] = at;
    if (from.from_user)
      value_.key_places[name] = place_text(at);
    const bool is_path =
        std::holds_alternative<std::filesystem::path*>(bound->target) && node.value<std::string>() != weights_as_drawn;
    if (from.is_received && is_path)
      return refuse_offered_path(group.name, name, node, layer_index);
    for (auto& problem : read_value(*bound, name, node, from)) {
      if (problem.kind == problem_kind::type)
        std::erase_if(problems_, [&](const mneme::scenario_error& other) {
          return other.kind == problem_kind::spelling && place_text(other.at) == place_text(problem.at);
        });
      problems_.push_back(std::move(problem));
      broken_.insert(name);
    }
  }

  /// Rejects a path received from another process, unless it is empty or a later layer replaces it.
  void refuse_offered_path(const std::string& section, const std::string& name, const toml::node& node,
                           std::size_t layer_index) {
    const auto key = name.substr(name.find('.') + 1);
    const auto* const path = node.as_string();
    const auto is_said_later = [&] {
      for (auto i = layer_index + 1; i < stack_.layers.size(); ++i)
        if (stack_.layers[i].values[section][key])
          return true;
      return false;
    };
    if ((path && path->get().empty()) || is_said_later())
      return;
    problems_.push_back({places_[name], name + " names a file of another machine; expected the file's content"});
    broken_.insert(name);
  }

  /// Reports an unknown key. A key in [model] or [strategy] that belongs to a kind which a higher layer has replaced
  /// merely has no effect. If the kind is unknown, its keys are not checked.
  void unknown_key(const section& group, const std::string& key, const place& at, std::size_t layer_index) {
    const bool of_model = group.name == "model", of_strategy = group.name == "strategy";
    if ((of_model && !value_.model.kind) || (of_strategy && !value_.strategy.method))
      return;
    if (!of_model && !of_strategy)
      return problems_.push_back({at, unknown_key_text(key, group, sections_)});
    const auto otherwise = of_model ? model_section{}.name : strategy_section{}.name;
    const auto now = said(group.name, "name", otherwise), then = said(group.name, "name", otherwise, layer_index + 1);
    const auto name = full_name(group.name, key);
    const auto* const renamed = entry_of_old_name(name, then); // so far only the keys of method `now` have been renamed
    const auto owners = suggest_owners(renamed ? std::string(renamed->name) : key, group.name);
    if (now != then && std::find(owners.begin(), owners.end(), then) != owners.end())
      warnings_.push_back({at, name + " has no effect: only " + quote_text(then) + " reads it, and " + group.name +
                                   ".name is " + quote_text(now)});
    else
      problems_.push_back({at, owners.empty() ? unknown_key_text(key, group, sections_)
                                              : "unknown key '" + key + "' in [" + group.name + "] of " +
                                                    quote_text(now) + "; it is a key of " + word_list(owners)});
  }

  void check_whole() {
    if (!has_strategy())
      problems_.push_back(
          {whole(value_.file), "no [strategy] section; add one, as in [strategy] and name = \"fedavg\""});
    check_names();
    resolve_defaults();
    resolve_file_keys();
    if (!broken_.contains("devices.profiles"))
      value_.devices.profiles_read =
          choose_profiles(value_.devices.profiles, place_of({"devices.profiles"}), problems_);
    if (value_.tasks.kind == task_kind::single)
      reduce_to_one_task();
    for (const auto& remark : check_combinations(value_))
      if (std::none_of(remark.keys.begin(), remark.keys.end(), [&](const auto& key) { return broken_.contains(key); }))
        problems_.push_back({place_of(remark.keys), remark.text});
    for (const auto& remark : find_suspicious(value_))
      warnings_.push_back({place_of(remark.keys), remark.text});
    for (const auto& remark : find_unused_keys(value_))
      if (changed_by_user(remark.keys.front()))
        warnings_.push_back({place_of(remark.keys), remark.text});
  }

  [[nodiscard]] bool has_strategy() const {
    return std::any_of(stack_.layers.begin(), stack_.layers.end(), [](const scenario_layer& source) {
      return source.from_user && source.values.contains("strategy");
    });
  }

  /// Reports names of open sets that are not registered.
  void check_names() {
    const auto complain = [&](const std::string& key, std::string text) {
      if (!broken_.contains(key))
        problems_.push_back({place_of({key}), std::move(text)});
    };
    if (has_strategy() && !value_.strategy.method)
      complain("strategy.name", "strategy.name = " + quote_text(value_.strategy.name) + ": unknown method");
    if (!value_.model.kind)
      complain("model.name", "model.name = " + quote_text(value_.model.name) + ": unknown model");
    if (!unknown_preset_.empty())
      complain("strategy.preset", unknown_preset_);
  }

  /// Sets the defaults that depend on other keys.
  void resolve_defaults() {
    if (value_.worker.device == "cuda")
      value_.worker.device = "cuda:0";
    for (const auto& section : sections_of(value_))
      for (const auto& rule : section.keys.rules())
        if (!places_.contains(section.name + "." + rule.key))
          rule.apply();
  }

  /// Sets the method's keys with values from files. Warns if the user gave a different value.
  void resolve_file_keys() {
    auto* const method = dynamic_cast<file_keys*>(value_.strategy.method.get());
    if (!method)
      return;
    key_table keys;
    value_.strategy.method->keys(keys);
    std::vector<std::string> before;
    for (const auto& key : keys.all())
      before.push_back(current_text(key));
    method->read_file_keys();
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto& key = keys.all()[i];
      const auto name = "strategy." + key.name;
      if (const auto now = current_text(key); now != before[i] && value_.key_places.contains(name))
        warnings_.push_back({place_of({name}), name + " = " + before[i] + " has no effect: a file sets it to " + now});
    }
  }

  void reduce_to_one_task() {
    if (value_.tasks.count != 1 && changed_by_user("tasks.count"))
      warnings_.push_back(
          {place_of({"tasks.count"}), "tasks.count has no effect: tasks.kind = \"single\" has one task"});
    value_.tasks.count = 1;
  }

  /// True if the user gave the key a value that differs from its default.
  [[nodiscard]] bool changed_by_user(const std::string& name) const {
    if (!value_.key_places.contains(name))
      return false;
    for (const auto& section : sections_)
      for (const auto& key : section.keys.all())
        if (full_name(section.name, key.name) == name)
          return current_text(key) != defaults_.at(name);
    return false;
  }

  /// Location of the first of `keys` that a layer sets, or of the file if none does.
  [[nodiscard]] place place_of(const std::vector<std::string>& keys) const {
    for (const auto& key : keys)
      if (const auto at = places_.find(key); at != places_.end())
        return at->second;
    return whole(value_.file);
  }

  [[nodiscard]] section* section_named(const std::string& name) {
    for (auto& group : sections_)
      if (group.name == name)
        return &group;
    return nullptr;
  }

  /// Sorts problems by layer, line and column.
  [[nodiscard]] diagnostics sorted(std::vector<scenario_error> problems) const {
    const auto rank = [&](const place& at) {
      const auto same = [&](const scenario_layer& source) { return source.source == at.source; };
      return std::find_if(stack_.layers.begin(), stack_.layers.end(), same) - stack_.layers.begin();
    };
    std::stable_sort(problems.begin(), problems.end(), [&](const scenario_error& a, const scenario_error& b) {
      return std::tuple(rank(a.at), a.at.line, a.at.column) < std::tuple(rank(b.at), b.at.line, b.at.column);
    });
    diagnostics out;
    for (auto& problem : problems)
      out.push_back({place_text(problem.at), std::move(problem.text)});
    return out;
  }

  scenario value_;
  layer_stack stack_;
  bool whole_ = true; // false if a file had a syntax error
  std::vector<section> sections_;
  std::vector<scenario_error> problems_, warnings_;
  std::map<std::string, place> places_;         // location of all keys that layers set, including presets
  std::map<std::string, std::string> defaults_; // default values as TOML, with the preset applied
  std::set<std::string> broken_;                // keys that already have a problem
  std::string unknown_preset_;
};

} // namespace

expected<reading> read_received_scenario(const std::string& text, const overrides& over) {
  return scenario_reader{}.read(read_received_layers(text, over));
}

expected<reading> read_scenario(const std::filesystem::path& file, const overrides& over) {
  return scenario_reader{}.read(file, over);
}

} // namespace mneme
