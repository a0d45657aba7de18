#include "runtime/models/frozen_parameters.hpp"
#include "runtime/base/diagnostic.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
namespace mneme {
namespace {

constexpr std::size_t names_listed_max = 8;

/// True if `name` matches `pattern`, in which each * stands for any text.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t in_pattern = 0, in_name = 0, after_star = std::string_view::npos, covered = 0;
  while (in_name < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      after_star = ++in_pattern;
      covered = in_name;
    } else if (in_pattern < pattern.size() && pattern[in_pattern] == name[in_name]) {
      ++in_pattern;
      ++in_name;
    } else if (after_star != std::string_view::npos) { // let the last star match one more character
      in_pattern = after_star;
      in_name = ++covered;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', in_pattern) == std::string_view::npos;
}

bool is_named_by(const parameter& entry, const std::string& text) {
  return matches(text, entry.name) || (entry.name.starts_with(text) && entry.name[text.size()] == '.');
}

/// Names of all parameters and of the layers that contain them.
std::vector<std::string> names_of(const model& net) {
  std::vector<std::string> names;
  for (const auto& entry : net.layout()) {
    names.push_back(entry.name);
    for (auto dot = entry.name.rfind('.'); dot != std::string::npos && dot > 0; dot = entry.name.rfind('.', dot - 1))
      if (auto layer = entry.name.substr(0, dot); std::find(names.begin(), names.end(), layer) == names.end())
        names.push_back(std::move(layer));
  }
  return names;
}

std::string unknown_text(const model& net, const std::string& text, std::size_t place) {
  const auto likely = closest_match(text, names_of(net));
  std::vector<std::string> listed;
  for (const auto& entry : net.layout())
    if (listed.size() < names_listed_max)
      listed.push_back(entry.name);
  return fmt::format("model.frozen[{}] = \"{}\": the net has no such parameter or layer{}; its parameters are {}{}",
                     place, text, likely.empty() ? "" : fmt::format("; did you mean \"{}\"?", likely),
                     fmt::join(listed, ", "), listed.size() < net.layout().size() ? ", ..." : "");
}

/// Returns an error text for each layer of which only one of the two running statistics was chosen.
std::vector<std::string> half_frozen(const model& net, const std::vector<bool>& chosen) {
  constexpr std::string_view mean = ".running_mean", variance = ".running_var";
  const auto is_chosen = [&](const std::string& name) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (net.layout()[i].name == name)
        return static_cast<bool>(chosen[i]);
    return false;
  };
  std::vector<std::string> texts;
  for (const auto& entry : net.layout()) {
    if (!entry.buffer || !entry.name.ends_with(mean))
      continue;
    const auto layer = entry.name.substr(0, entry.name.size() - mean.size());
    if (is_chosen(entry.name) != is_chosen(layer + std::string(variance)))
      texts.push_back(fmt::format("model.frozen names one of the two running statistics of \"{0}\"; expected both, "
                                  "\"{0}.running_*\", or the layer, \"{0}\"",
                                  layer));
  }
  return texts;
}

} // namespace

tl::expected<model_ref, std::vector<std::string>> with_frozen(const model_ref& net,
                                                              const std::vector<std::string>& entries) {
  if (entries.empty())
    return net;
  std::vector<bool> chosen(net->layout().size(), false);
  std::vector<std::string> errors;
  for (std::size_t place = 0; place < entries.size(); ++place) {
    bool is_known = false;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (is_named_by(net->layout()[i], entries[place]))
        chosen[i] = is_known = true;
    if (!is_known)
      errors.push_back(unknown_text(*net, entries[place], place));
  }
  for (auto& text : half_frozen(*net, chosen))
    errors.push_back(std::move(text));
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  if (auto frozen = net->with_frozen(chosen))
    return frozen;
  return tl::unexpected(std::vector{
      fmt::format("model.frozen: in the net '{}' the method selects the trained parts; expected no model.frozen",
                  net->identity())});
}

bool has_trained_parameters(const model& net, bool head_only) {
  const auto& layout = net.layout();
  return std::any_of(layout.begin(), layout.end(), [&](const parameter& entry) {
    return !entry.buffer && !entry.frozen && (entry.head || !head_only);
  });
}

} // namespace mneme
