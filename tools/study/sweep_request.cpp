#include "tools/study/sweep_request.hpp"
#include "runtime/scenario/layers.hpp"
#include "runtime/scenario/values.hpp"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr std::size_t seeds_max = 100'000;

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// Parses "7" or "7-9" as first and last seed; nullopt for other texts.
std::optional<std::pair<std::int64_t, std::int64_t>> seed_range(std::string_view text) {
  const auto dash = text.find('-', 1);
  const auto first = as_integer(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : as_integer(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last - *first >= std::int64_t{seeds_max})
    return std::nullopt;
  return std::pair(*first, *last);
}

/// Splits at commas outside brackets and quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  std::int64_t depth = 0;
  char quote = 0;
  for (const char letter : text) {
    if (quote != 0)
      quote = letter == quote ? 0 : quote;
    else if (letter == '"' || letter == '\'')
      quote = letter;
    else if (letter == '[' || letter == '{')
      ++depth;
    else if (letter == ']' || letter == '}')
      --depth;
    else if (letter == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    values.back() += letter;
  }
  return values;
}

class sweep_reader {
public:
  explicit sweep_reader(const std::filesystem::path& file) : file_(file), stack_(read_layers(file, {})) {}

  expected<sweep_request> read() {
    for (const auto& problem : stack_.problems)
      add(problem.at, problem.text);
    if (errors_.empty())
      read_top();
    if (errors_.empty() && request_.scenarios.empty())
      errors_.push_back({file_.string(), "[sweep] names no scenario; add scenarios = [\"a.toml\"]"});
    return errors_.empty() ? expected<sweep_request>(std::move(request_)) : tl::unexpected(std::move(errors_));
  }

private:
  [[nodiscard]] const scenario_layer& source() const { return stack_.layers.back(); }
  void add(const place& at, std::string text) { errors_.push_back({place_text(at), std::move(text)}); }
  void add(const toml::node& at, std::string text) { add(place_in(source(), at.source()), std::move(text)); }

  void read_top() {
    for (const auto& [name, node] : source().values) {
      const auto* table = node.as_table();
      if (name.str() != "sweep" || !table) {
        add(place_in(source(), name.source()),
            fmt::format("unknown {} '{}'; a sweep has only a [sweep] table; put keys of scenarios in [sweep.set]",
                        table ? "section" : "key", name.str()));
        continue;
      }
      for (const auto& [key, value] : *table)
        read_key(key, value);
    }
  }

  void read_key(const toml::key& key, const toml::node& value) {
    if (key.str() == "scenarios")
      read_scenarios(value);
    else if (key.str() == "seeds")
      read_seeds(value);
    else if (key.str() == "over")
      read_keys(value, "", [&](const std::string& name, const toml::node& node) { read_axis(name, node); });
    else if (key.str() == "set")
      read_keys(value, "", [&](const std::string& name, const toml::node& node) {
        request_.settings.emplace_back(name, value_text(node));
      });
    else {
      const auto meant = closest_match(key.str(), {"scenarios", "seeds", "over", "set"});
      add(place_in(source(), key.source()),
          fmt::format("unknown key '{}' in [sweep]; {}", key.str(),
                      meant.empty() ? "expected scenarios, seeds, over or set" : "did you mean '" + meant + "'?"));
    }
  }

  void read_scenarios(const toml::node& value) {
    const auto* list = value.as_array();
    if (!list)
      return add(value, "scenarios = " + found_text(value) + ": expected a list of files, as in [\"a.toml\"]");
    for (const auto& node : *list) {
      const auto* name = node.as_string();
      if (!name || name->get().empty())
        add(node, "scenarios: expected the path of a scenario, found " + found_text(node));
      else
        request_.scenarios.push_back((file_.parent_path() / name->get()).lexically_normal());
    }
  }

  void read_seeds(const toml::node& value) {
    std::string text;
    if (const auto* range = value.as_string())
      text = range->get();
    else if (const auto* list = value.as_array())
      for (const auto& node : *list)
        text += (text.empty() ? "" : ",") + found_text(node);
    auto seeds = parse_seeds("seeds", text);
    if (!seeds || seeds->empty())
      return add(value, seeds ? "seeds = " + found_text(value) + ": expected \"1-5\" or a list of integers"
                              : seeds.error().front().text);
    request_.seeds = std::move(*seeds);
  }

  /// Calls `act` for each key in any notation: quoted, dotted, or in a table [sweep.over.training].
  template <class Act>
  void read_keys(const toml::node& value, const std::string& lead, const Act& act) {
    const auto* table = value.as_table();
    if (!table)
      return add(value, "expected a table of scenario keys, found " + found_text(value));
    for (const auto& [key, node] : *table) {
      const auto name = lead + std::string(key.str());
      if (node.is_table() && name.find('.') == std::string::npos)
        read_keys(node, name + ".", act);
      else
        act(name, node);
    }
  }

  void read_axis(const std::string& name, const toml::node& node) {
    const auto* list = node.as_array();
    if (!list || list->empty())
      return add(node, name + " = " + found_text(node) + ": expected a list of the values that the key takes in turn");
    sweep_axis axis{.key = name};
    for (const auto& value : *list)
      axis.values.push_back(value_text(value));
    request_.axes.push_back(std::move(axis));
  }

  std::filesystem::path file_;
  layer_stack stack_;
  sweep_request request_;
  diagnostics errors_;
};

} // namespace

expected<std::vector<std::int64_t>> parse_seeds(const std::string& option, const std::string& text) {
  const auto refused = [&](const std::string& reason) {
    return failed("", option + " = '" + text + "': " + reason + ", as in 1,2,3 or 1-5");
  };
  std::vector<std::int64_t> seeds;
  std::size_t from = 0;
  while (!text.empty() && from <= text.size()) {
    const auto comma = std::min(text.find(',', from), text.size());
    const auto range = seed_range(std::string_view(text).substr(from, comma - from));
    if (!range)
      return refused("expected integers >= 0 with commas between them");
    for (auto seed = range->first; seed <= range->second; ++seed) {
      if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end())
        return refused("seed " + std::to_string(seed) + " occurs twice; expected different seeds");
      seeds.push_back(seed);
    }
    if (seeds.size() > seeds_max)
      return refused(fmt::format("expected at most {} seeds", seeds_max));
    from = comma + 1;
  }
  return seeds;
}

expected<sweep_axis> parse_axis(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return failed("", "--over '" + text + "': expected KEY=V1,V2, as in --over training.learning_rate=0.1,0.01");
  return sweep_axis{.key = text.substr(0, equals), .values = split_values(std::string_view(text).substr(equals + 1))};
}

bool is_sweep_file(const std::filesystem::path& file) {
  const auto stack = read_layers(file, {});
  return !stack.layers.empty() && stack.layers.back().values["sweep"].is_table();
}

expected<sweep_request> read_sweep(const std::filesystem::path& file) { return sweep_reader(file).read(); }

} // namespace mneme
