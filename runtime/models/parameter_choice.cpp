#include "runtime/models/parameter_choice.hpp"
#include "runtime/base/check.hpp"
#include "runtime/models/model.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>
namespace mneme {
namespace {

bool belongs_to(const parameter& entry, const std::string& name) {
  const auto layer = parameter_choice::layer_of(entry);
  return layer == name || (layer.starts_with(name) && layer[name.size()] == '.');
}

/// Layers that have parameters to train, in the net's order.
std::vector<std::string> layer_names(const model& net) {
  std::vector<std::string> names;
  for (const auto& entry : net.layout())
    if (const auto name = parameter_choice::layer_of(entry);
        !entry.frozen && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

} // namespace

std::string parameter_choice::layer_of(const parameter& entry) { return entry.name.substr(0, entry.name.rfind('.')); }

parameter_choice parameter_choice::head_of(const model& net) {
  std::vector<bool> chosen;
  for (const auto& entry : net.layout())
    chosen.push_back(entry.head && !entry.held);
  return parameter_choice(std::move(chosen));
}

parameter_choice parameter_choice::body_of(const model& net) {
  std::vector<bool> chosen;
  for (const auto& entry : net.layout())
    chosen.push_back(!entry.head && !entry.frozen);
  return parameter_choice(std::move(chosen));
}

parameter_choice parameter_choice::layers_of(const model& net, const std::vector<std::string>& names) {
  std::vector<bool> chosen(net.layout().size(), false);
  for (const auto& name : names) {
    bool is_trained = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto& entry = net.layout()[i];
      if ((entry.frozen && !entry.held) || !belongs_to(entry, name))
        continue;
      chosen[i] = !entry.held;
      is_trained = true;
    }
    if (!is_trained)
      throw std::invalid_argument(
          fmt::format("the net '{}' has no layer '{}' that could be trained; expected names of: {}", net.identity(),
                      name, fmt::join(layer_names(net), ", ")));
  }
  return parameter_choice(std::move(chosen));
}

parameter_choice parameter_choice::with_statistics(const model& net) const {
  auto with = *this;
  for (std::size_t i = 0; i < chosen_.size(); ++i)
    with.chosen_[i] = chosen_[i] || (net.layout()[i].buffer && !net.layout()[i].frozen);
  with.statistics_ = !whole();
  return with;
}

bool parameter_choice::changes(const model& net, std::size_t index) const {
  return whole() ? !net.layout()[index].frozen : chosen_[index];
}

bool parameter_choice::changes_any(std::size_t first, std::size_t last) const {
  MNEME_CHECK(first <= last && last <= chosen_.size(), first, last, chosen_.size());
  const auto at = [&](std::size_t index) { return chosen_.begin() + static_cast<std::ptrdiff_t>(index); };
  return std::find(at(first), at(last), true) != at(last);
}

bool parameter_choice::couples_batch_rows(const model& net) const {
  if (whole() || !net.couples_batch_rows())
    return net.couples_batch_rows();
  const auto& layout = net.layout();
  for (std::size_t i = 0; i < layout.size(); ++i)
    if (chosen_[i] && layout[i].buffer)
      return true;
  return false;
}

bool has_held_parameters(const model& net) {
  const auto& layout = net.layout();
  return std::any_of(layout.begin(), layout.end(), [](const parameter& entry) { return entry.held; });
}

std::vector<segment> trained_segments(const model& net, class_range classes, const parameter_choice& trained) {
  std::vector<segment> segments;
  const auto& layout = net.layout();
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const auto& parameter = layout[i];
    const bool beyond = parameter.head && classes.size() == 0; // true if the pass ends at the features
    if (parameter.buffer || beyond || !trained.changes(net, i))
      continue;
    segment piece{parameter.offset, parameter.size};
    if (parameter.head && !parameter.whole) {
      MNEME_CHECK(0 <= classes.low && classes.high <= parameter.shape[0], classes.low, classes.high, parameter.name);
      const auto row = parameter.size / parameter.shape[0];
      piece = {parameter.offset + classes.low * row, classes.size() * row};
    }
    if (!segments.empty() && segments.back().offset + segments.back().size == piece.offset)
      segments.back().size += piece.size;
    else if (piece.size > 0)
      segments.push_back(piece);
  }
  return segments;
}

std::vector<segment> with_rates(const std::vector<segment>& segments, const model& net,
                                const std::vector<layer_rate>& rates) {
  if (rates.empty())
    return segments;
  const auto rate_of = [&](const parameter& entry) {
    const auto own =
        std::find_if(rates.begin(), rates.end(), [&](const layer_rate& each) { return belongs_to(entry, each.layer); });
    return own == rates.end() ? 1.0 : own->factor;
  };
  std::vector<segment> cut;
  for (const auto& piece : segments)
    for (const auto& entry : net.layout()) { // in the order of their offsets
      const auto begin = std::max(piece.offset, entry.offset);
      const auto end = std::min(piece.offset + piece.size, entry.offset + entry.size);
      if (begin >= end)
        continue;
      const auto rate = rate_of(entry);
      if (!cut.empty() && cut.back().offset + cut.back().size == begin && cut.back().rate == rate)
        cut.back().size += end - begin;
      else
        cut.push_back({.offset = begin, .size = end - begin, .rate = rate});
    }
  return cut;
}

} // namespace mneme
