// Reports of nodes. A report is validated as a whole before any part of it is forwarded.
#include "actors/nodes/placement.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>
namespace mneme {
namespace {

/// Adds a computing time that a node has reported. The sum is kept below 2^62: an overflow would make it negative.
void add_busy_time(std::atomic<std::int64_t>& sum_ns, std::int64_t stated_ns) {
  constexpr std::int64_t sum_max = std::int64_t{1} << 62;
  sum_ns += std::clamp<std::int64_t>(sum_max - sum_ns.load(), 0, stated_ns);
}

} // namespace

void placement_state::on_frame(const node_frame& in) {
  if (!map_.is_connected(in.node))
    return;
  const auto error = exception_message_of([&] {
    auto content = reader_of(in.content);
    content.onto(c10::Device(context_->device));
    auto kind = node_message::report;
    content(kind);
    on_report(content, in.node, in.content->size());
    keep_polling();
  });
  if (!error.empty())
    reject(in.node, "sends a report that " + error);
}

void placement_state::on_report(archive& content, node_number number, std::size_t bytes) {
  auto& node = nodes_.at(number);
  node_counters figures;
  pending_report held{.bytes = bytes};
  content(figures);
  if (!node.tensors->acknowledge(figures.messages_handled))
    throw archive_error("acknowledges messages that were not sent");
  if (figures.busy_ns < node.busy_ns)
    throw archive_error("states less computing time than the report before it");
  serialize_wave(content, held.report, *node.tensors);
  content.expect_end();
  held.busy_ns = figures.busy_ns - std::exchange(node.busy_ns, figures.busy_ns);
  const auto shard = held.report.from;
  if (shard.value >= journals_.size() ||
      map_.location_of(shard) != shard_location{.where = shard_location::kind::node, .node = number})
    throw archive_error("is of a shard that the node does not host");
  held_[shard.value].push_back(std::move(held));
  accept_reports(shard);
}

/// Accepts the held reports of a shard in order. Stops at one that waits for a replay.
void placement_state::accept_reports(shard_id shard) {
  const auto place = map_.location_of(shard);
  while (!held_[shard.value].empty() && map_.location_of(shard) == place)
    if (!accept_next_report(shard, place.node))
      return;
}

/// Returns false if the report has to wait or its node was rejected.
bool placement_state::accept_next_report(shard_id shard, node_number number) {
  auto& held = held_[shard.value];
  const auto& journal = journals_[shard.value];
  if (const auto error = journal.report_error(held.front().report); !error.empty()) {
    reject(number, "sends a report that " + error);
    return false;
  }
  const auto verdict = validator_.validate(held.front().report, journal);
  if (verdict.is_pending)
    return false;
  if (!verdict.error.empty()) {
    verdict.has_other_result ? end_for_other_result(number, verdict.error) : reject(number, verdict.error);
    return false;
  }
  auto next = std::move(held.front());
  held.pop_front();
  accept(std::move(next), shard, number);
  return true;
}

void placement_state::accept(pending_report held, shard_id shard, node_number number) {
  auto& report = held.report;
  const auto rounds = std::ssize(report.finished);
  for (const auto& finished : report.finished)
    validator_.forget(finished.id);
  for (auto& failure : report.failed) {
    validator_.forget(failure.last_job.assignment);
    if (failure.reason != interrupted_text)
      failure.reason = printable_ascii(failure.reason) + " (on node " + pool_->view(number).address + ")";
  }
  journals_[shard.value].accept(std::move(report));
  pool_->consumed(number, held.bytes);
  add_busy_time(*context_->busy_ns, held.busy_ns);
  records_->change(number, [&](node_record& record) {
    record.client_rounds += rounds;
    record.busy_seconds += 1e-9 * static_cast<double>(held.busy_ns);
  });
  forward(shard);
  drain(shard, number);
}

void placement_state::on_local_report(wave_report& report) {
  const auto shard = report.from;
  for (const auto& finished : report.finished)
    validator_.forget(finished.id);
  if (const auto error = journals_.at(shard.value).record(std::move(report)); !error.empty())
    return self_->quit(caf::make_error(run_errc::actor_lost, "a shard of this process " + error));
  forward(shard);
}

void placement_state::on_replay(replay_report& outcome) {
  if (const auto shard = validator_.end(std::move(outcome)))
    accept_reports(*shard);
}

// -- invalid reports --------------------------------------------------------------------------------------------------

/// Disconnects the node for the rest of the run.
void placement_state::reject(node_number number, const std::string& reason) {
  pool_->drop(number, reason);
  on_node_lost(number, reason);
}

/// Ends the run and has its checkpoints removed, because results of the node outside the sample may be wrong, too.
void placement_state::end_for_other_result(node_number number, const std::string& reason) {
  pool_->drop(number, reason);
  records_->change(number, [&](node_record& record) { record.rejection_reason = reason; });
  records_->mark_untrusted();
  self_->quit(caf::make_error(
      run_errc::round_failed,
      fmt::format("node {} {}. Checkpoints of this process may contain other results of the node and are removed: "
                  "resume the run without that node",
                  pool_->view(number).address, reason)));
}

} // namespace mneme
