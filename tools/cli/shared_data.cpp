#include "tools/cli/shared_data.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/scenario/sections.hpp"
#include <algorithm>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Lists the keys of [data], and the seed if rows depend on it. Equal texts mean equal rows.
std::string rows_text(const scenario& settings) {
  auto copy = settings;
  std::string text;
  for (const auto& section : sections_of(copy))
    for (const auto& key : section.keys.all())
      if (section.name == "data")
        text += fmt::format("{} = {}\n", key.name, current_text(key));
  if (settings.data.test_share > 0.0) // in this case the seed selects the test rows
    text += fmt::format("seed = {}\n", settings.seed);
  return text;
}

} // namespace

std::shared_ptr<const raw_data> shared_data::rows_of(const scenario& settings) { return loaded(settings).rows; }

std::string shared_data::digest_of(const scenario& settings) {
  auto& entry = loaded(settings);
  if (entry.rows && entry.digest.empty())
    entry.digest = hex_text(data_content(*entry.rows));
  return entry.digest;
}

shared_data::data_set& shared_data::loaded(const scenario& settings) {
  const auto source = std::find_if(sources_.begin(), sources_.end(),
                                   [&](const auto& known) { return known.name == settings.data.name; });
  if (source == sources_.end() || source->from_seed)
    return none_;
  const auto [at, is_new] = sets_.try_emplace(rows_text(settings));
  if (is_new) {
    if (auto rows = load_data(settings.data, settings.data_seed()))
      at->second.rows = std::make_shared<const raw_data>(std::move(*rows));
  }
  return at->second;
}

} // namespace mneme
