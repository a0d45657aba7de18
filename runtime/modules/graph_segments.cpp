#include "runtime/modules/graph_segments.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <set>
namespace mneme {
namespace {

/// Slots that a call reads.
std::vector<std::int32_t> slots_read(const exported_call& call) {
  std::vector<std::int32_t> slots;
  for (const auto& operand : call.operands)
    for (const auto& item : operand.items)
      if (item.slot >= 0)
        slots.push_back(item.slot);
  return slots;
}

bool computes_size(const exported_call& call) {
  return call.kind == call_kind::size || call.kind == call_kind::arithmetic;
}

/// The value among `needed` that the call writes in place, possibly through views of it; -1 if there is none.
std::int32_t written_value(const graph_view& graph, const exported_call& call, const std::set<std::int32_t>& needed) {
  if (!call.op || !call.writes_argument())
    return -1;
  const auto* writer = &call;
  while (writer && writer->op && !writer->op->schema().returns().empty() &&
         writer->op->schema().returns()[0].alias_info() != nullptr) {
    const auto slots = slots_read(*writer);
    if (slots.empty())
      return -1;
    if (needed.contains(slots[0]))
      return slots[0];
    writer = graph.producer(slots[0]);
  }
  return -1;
}

} // namespace

std::string graph_segment::text() const { return fmt::format("operators {} to {}", from, to); }

row_flow::row_flow(const graph_view& graph) : graph_(graph) {
  nodes_[graph.program().rows_slot] = {};
  for (const auto& call : graph.program().calls) {
    if (computes_size(call))
      continue;
    std::int32_t before = -1;
    for (const auto slot : slots_read(call))
      if (nodes_.contains(slot))
        before = before < 0 ? slot : common(before, slot);
    if (before >= 0)
      for (const auto slot : call.results)
        nodes_[slot] = {.before = before, .depth = nodes_[before].depth + 1};
  }
}

std::int32_t row_flow::common(std::int32_t a, std::int32_t b) const {
  while (a != b) {
    auto& deeper = nodes_.at(a).depth >= nodes_.at(b).depth ? a : b;
    deeper = nodes_.at(deeper).before;
  }
  return a;
}

bool row_flow::is_layer_value(std::int32_t slot) const {
  const auto rows_slot = graph_.program().rows_slot;
  const auto& sizes = graph_.sizes(slot);
  return slot == rows_slot ||
         (nodes_.contains(slot) && sizes.size() >= 2 && sizes.size() <= 4 && sizes[0] == graph_.sizes(rows_slot)[0]);
}

std::int32_t row_flow::before(std::int32_t slot) const {
  if (!is_layer_value(slot) || slot == graph_.program().rows_slot)
    throw no_layer("its result is no value of the rows");
  do
    slot = nodes_.at(slot).before;
  while (!is_layer_value(slot));
  return slot;
}

exported_program segment_program(const graph_view& graph, const graph_segment& segment, bool training) {
  const auto& whole = graph.program();
  auto part = whole;
  part.calls.clear();
  part.result_slot = segment.to;
  std::set<std::int32_t> needed{segment.to}, read_later;
  for (auto call = whole.calls.rbegin(); call != whole.calls.rend(); ++call) {
    const auto reads = slots_read(*call);
    const auto written = written_value(graph, *call, needed);
    // An operator that writes the segment's result in place is a later layer, unless the result is read after it.
    const bool writes = written >= 0 && (written != segment.to || read_later.contains(written));
    read_later.insert(reads.begin(), reads.end());
    if (!writes && std::none_of(call->results.begin(), call->results.end(),
                                [&](std::int32_t slot) { return slot != segment.from && needed.contains(slot); }))
      continue;
    if (training && call->writes_buffer && call->kind != call_kind::batch_norm)
      throw no_layer(fmt::format("{}: it updates a buffer among operators without a layer", call->place));
    for (const auto slot : reads) {
      if (slot == whole.rows_slot && slot != segment.from && !computes_size(*call))
        throw no_layer(fmt::format("{}: it reads the rows in addition to its other input", call->place));
      needed.insert(slot);
    }
    part.calls.push_back(*call);
  }
  std::reverse(part.calls.begin(), part.calls.end());
  std::erase_if(part.held, [&](const auto& held) { return !needed.contains(held.slot); });
  return part;
}

} // namespace mneme
