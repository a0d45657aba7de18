#include "runtime/scenario/device_profiles.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/suggestions.hpp"
#include "runtime/scenario/values.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

const std::vector<named_profile>& profiles_of_the_build(); // tools/cmake/device_catalogue.cmake writes it

namespace {

constexpr range<double> rate{.low = 0.0}, work_rate{.low = 0.0, .high = 1e24};
constexpr std::int64_t parameters_max = 1'000'000'000'000'000;
constexpr std::uint64_t profile_bytes_max = 16 << 20;

key_table keys_of(device_profile& to) {
  key_table keys;
  keys.text("title", to.title, "What the device is.");
  keys.texts("sources", to.sources, "Where each figure comes from.");
  keys.number("flops_per_second", to.flops_per_second, work_rate, "Products in training; 0: not stated.");
  keys.number("bytes_per_second", to.bytes_per_second, work_rate, "Of its memory; 0: not stated.");
  keys.duration("job_start", to.job_start, "Added to every job.");
  keys.duration("round_start", to.round_start, "Added to the first job of a client's round.");
  keys.size("memory", to.memory, "That a net may take; 0: not stated.");
  return keys;
}

key_table keys_of(net_speed& to) {
  key_table keys;
  keys.text("net", to.net, "As model.name has it.");
  keys.integer("parameters", to.parameters, {.low = 1, .high = parameters_max}, "That the net has.");
  keys.integer("batch", to.batch, {.low = 0}, "Rows of a step; 0: full batch.");
  keys.number("train_rows_per_second", to.train_rows_per_second, {.low = 0.0, .open_low = true},
              "Forward, backward and optimizer.");
  keys.number("forward_rows_per_second", to.forward_rows_per_second, rate, "0: three times that of training.");
  return keys;
}

key_table keys_of(link_profile& to, device_value& jitter) {
  key_table keys;
  keys.device("uplink_mbit", to.uplink_mbit, rate, "From device to server.");
  keys.device("downlink_mbit", to.downlink_mbit, rate, "From server to device.");
  keys.duration("latency", to.latency, "Added to every transfer.");
  keys.device("jitter", jitter, rate, "Seconds that come on top, drawn for each transfer.");
  return keys;
}

class profile_reader {
public:
  profile_reader(std::string source, const std::string& text, std::vector<problem>& problems)
      : problems_(problems), from_(parsed_layer(std::move(source), text, problems)) {}

  device_profile read() {
    device_profile profile{.source = from_.source};
    const auto keys = keys_of(profile);
    for (const auto& [key, node] : from_.values)
      if (key == "nets")
        read_nets(node, profile);
      else if (key == "link" && node.is_table())
        profile.link = link_in(*node.as_table());
      else
        read_key(keys, {}, key, node, {"nets", "link"});
    if (profile.nets.empty() && profile.flops_per_second <= 0.0 && !profile.link)
      add(whole(from_.source),
          "a profile without [[nets]], flops_per_second and [link]; expected at least one of them");
    if (profile.bytes_per_second > 0.0 && profile.flops_per_second <= 0.0)
      add(whole(from_.source), "bytes_per_second without flops_per_second; expected both, or [[nets]]");
    return profile;
  }

private:
  void add(const place& at, std::string text) { problems_.push_back({at, std::move(text)}); }

  void read_key(const key_table& keys, const std::string& lead, const toml::key& key, const toml::node& node,
                std::vector<std::string> besides = {}) {
    if (const auto* const option = keys.find(key.str())) {
      for (auto& complaint : read_value(*option, lead + std::string(key.str()), node, from_))
        problems_.push_back(std::move(complaint));
      return;
    }
    for (const auto& known : keys.all())
      besides.push_back(known.name);
    const auto meant = nearest(key.str(), besides);
    add(place_in(from_, key.source()),
        fmt::format("unknown key '{}{}' of a device profile; {}", lead, key.str(),
                    meant.empty() ? "expected one of " + word_list(besides) : "did you mean '" + meant + "'?"));
  }

  void read_nets(const toml::node& node, device_profile& into) {
    const auto* const list = node.as_array();
    if (!list || !std::all_of(list->begin(), list->end(), [](const toml::node& entry) { return entry.is_table(); }))
      return add(place_in(from_, node.source()), "nets: expected tables, each below [[nets]]");
    for (const auto& entry : *list) {
      net_speed speed;
      const auto keys = keys_of(speed);
      for (const auto& [key, value] : *entry.as_table())
        read_key(keys, "nets.", key, value);
      for (const char* key : {"net", "parameters", "batch", "train_rows_per_second"})
        if (!entry.as_table()->contains(key))
          add(place_in(from_, entry.source()), fmt::format("[[nets]]: {} is not given", key));
      into.nets.push_back(std::move(speed));
    }
  }

  link_profile link_in(const toml::table& table) {
    link_profile link;
    device_value jitter = 0.0;
    const auto keys = keys_of(link, jitter);
    for (const auto& [key, value] : table)
      read_key(keys, "link.", key, value);
    if (const auto* const fixed = std::get_if<double>(&jitter))
      link.jitter = {.median = *fixed};
    else if (const auto* const drawn = std::get_if<log_normal>(&jitter))
      link.jitter = *drawn;
    for (const device_value* value : {&link.uplink_mbit, &link.downlink_mbit, &jitter})
      if (std::holds_alternative<std::vector<double>>(*value))
        add(place_in(from_, table.source()), "link: expected numbers or { median = 1.0, sigma = 0.5 }, found a list; a "
                                             "profile is of any number of clients");
    return link;
  }

  std::vector<problem>& problems_;
  scenario_layer from_;
};

std::string lines_of(const key_table& keys) {
  std::string lines;
  for (const auto& option : keys.all())
    lines += option.name + " = " + current_text(option) + "\n";
  return lines;
}

const named_profile* known(const std::string& name) {
  for (const auto& entry : device_catalogue())
    if (entry.name == name)
      return &entry;
  return nullptr;
}

std::string unknown_text(const std::string& key, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : device_catalogue())
    names.push_back(entry.name);
  const auto meant = nearest(name, names);
  return fmt::format("devices.profiles: {} = {}: this program has no such profile; {}", key, in_quotes(name),
                     meant.empty() ? "mneme list devices names those it has"
                                   : "did you mean " + in_quotes(meant) + "?");
}

/// The profile's text, and what to call it; nothing, with a problem, if there is none.
std::optional<named_profile> text_of(const profile_choice& choice, const place& at, std::vector<problem>& problems) {
  if (!choice.text.empty())
    return named_profile{"text of devices.profiles", choice.text};
  if (!choice.file.empty()) {
    auto text = text_of_file(choice.file, profile_bytes_max);
    if (!text)
      problems.push_back(
          {at, fmt::format("devices.profiles: cannot read {}: {}; a device profile is a file in TOML, as "
                           "`mneme calibrate` writes it",
                           in_quotes(choice.file.string()), text.error().front().text)});
    return text ? std::optional(named_profile{choice.file.string(), std::move(*text)}) : std::nullopt;
  }
  if (const auto* const entry = known(choice.name))
    return named_profile{"profile '" + entry->name + "'", entry->text};
  problems.push_back({at, unknown_text("name", choice.name)});
  return std::nullopt;
}

} // namespace

const std::vector<named_profile>& device_catalogue() { return profiles_of_the_build(); }

device_profile profile_of_text(const std::string& source, const std::string& text, std::vector<problem>& problems) {
  auto profile = profile_reader(source, text, problems).read();
  profile.content = hex_text(digest_of(std::as_bytes(std::span(text))));
  return profile;
}

std::string profile_text(device_profile profile) {
  auto text = lines_of(keys_of(profile));
  for (auto& speed : profile.nets)
    text += "\n[[nets]]\n" + lines_of(keys_of(speed));
  if (profile.link) {
    device_value jitter = profile.link->jitter;
    text += "\n[link]\n" + lines_of(keys_of(*profile.link, jitter));
  }
  return text;
}

std::vector<std::shared_ptr<const device_profile>> chosen_profiles(const std::vector<profile_choice>& choices,
                                                                   const place& at, std::vector<problem>& problems) {
  std::vector<std::shared_ptr<const device_profile>> chosen;
  for (const auto& choice : choices) {
    const auto text = text_of(choice, at, problems);
    auto profile = text ? profile_of_text(text->name, text->text, problems) : device_profile{};
    if (const auto* const entry = choice.link.empty() ? nullptr : known(choice.link)) {
      const auto other = profile_of_text("profile '" + entry->name + "'", entry->text, problems);
      profile.link = other.link;
      profile.content += other.content;
      if (!other.link)
        problems.push_back({at, fmt::format("devices.profiles: link = {}: that profile has no [link]; expected one "
                                            "that has, as \"lte\"",
                                            in_quotes(choice.link))});
    } else if (!choice.link.empty()) {
      problems.push_back({at, unknown_text("link", choice.link)});
    }
    if (text && profile.nets.empty() && profile.flops_per_second <= 0.0)
      problems.push_back({at, fmt::format("devices.profiles: {} says nothing of how fast it computes; expected "
                                          "[[nets]] or flops_per_second, or its name as the `link` of another profile",
                                          text->name)});
    chosen.push_back(std::make_shared<const device_profile>(std::move(profile)));
  }
  return chosen;
}

std::vector<profile_choice> with_texts(std::vector<profile_choice> choices) {
  std::vector<problem> ignored; // they have been read before
  for (auto& choice : choices)
    if (auto text = text_of(choice, {}, ignored))
      choice = {.text = std::move(text->text), .link = choice.link, .share = choice.share};
  return choices;
}

} // namespace mneme
