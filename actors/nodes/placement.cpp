#include "actors/nodes/placement.hpp"
#include "runtime/base/random_number.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>
namespace mneme {
namespace {

constexpr auto node_check_interval = std::chrono::milliseconds(500);

} // namespace

placement_state::placement_state(placement_actor::pointer self, run_context_ref context,
                                 std::shared_ptr<node_pool> nodes, std::shared_ptr<node_records> records,
                                 placement_links peers)
    : self_(self), context_(std::move(context)), pool_(std::move(nodes)), records_(std::move(records)),
      peers_(std::move(peers)), map_(static_cast<std::size_t>(context_->shards), context_->local_workers,
                                     context_->scenario.worker.no_nodes == no_nodes_policy::local),
      validator_(context_, random_number()), held_(static_cast<std::size_t>(context_->shards)) {
  for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(context_->shards); ++s)
    journals_.emplace_back(shard_id{s}, *context_->population);
  if (pool_->workers() == 0 || context_->local_workers > 0) // if not, the first nodes join soon
    assign_orphaned_shards();
}

placement_actor::behavior_type placement_state::make_behavior() {
  self_->delayed_send(self_, node_check_interval, node_tick{});
  return {
      [this](start_rounds& wave) { on_command(std::move(wave)); },
      [this](release& command) { on_command(std::move(command)); },
      [this](abandon& rounds) { on_command(std::move(rounds)); },
      [this](wave_report& report) { on_local_report(report); },
      [this](const node_frame& in) { on_frame(in); },
      [this](const node_status_change& change) { on_change(change); },
      [this](replay_report& outcome) { on_replay(outcome); },
      [this](node_tick) { check_nodes(); },
      [this](poll_tick) {
        if (awake_.should_continue())
          self_->send(self_, poll_tick{});
      },
  };
}

// -- messages from the scheduler --------------------------------------------------------------------------------------

template <class Command>
void placement_state::on_command(Command command) {
  const auto shard = command.to;
  if constexpr (std::is_same_v<Command, abandon>)
    for (const auto id : command.assignments)
      validator_.forget(id);
  const auto host = map_.location_of(shard);
  return_to_preferred(shard);
  journals_.at(shard.value).record(shard_journal::command(std::move(command)));
  forward(shard);
  if (host.where == shard_location::kind::node)
    drain(shard, host.node); // discarding rounds may have emptied the shard, and no report follows
}

/// Moves a shard to its preferred host, or away from a leaving node.
void placement_state::return_to_preferred(shard_id shard) {
  auto& journal = journals_.at(shard.value);
  const auto before = map_.location_of(shard);
  const bool is_leaving = before.where == shard_location::kind::node && map_.is_leaving(before.node);
  if (!can_move(journal, before) || !map_.return_to_preferred(shard))
    return;
  count_rerun(before, journal);
  if (!journal.is_idle() && !is_leaving)
    return send(before, shard, journal.change_host());
  journal.host_lost();
  held_.at(shard.value).clear();
  if (map_.location_of(shard).where != shard_location::kind::unassigned)
    journal.host_found();
}

/// True if a shard may leave its host. A shard without rounds may always leave. On a CPU, rerun rounds have the same
/// results. There, a shard that waits for no reply and whose rounds can all be rerun may also leave in two cases.
/// First, its node is leaving, and either no job of its rounds has been released or half of the grace period is over.
/// Second, its node stays and the run is asynchronous, because shards are seldom idle in such runs.
bool placement_state::can_move(const shard_journal& journal, const shard_location& from) const {
  if (journal.is_idle())
    return true;
  if (context_->device != "cpu" || !journal.is_quiet())
    return false;
  if (from.where != shard_location::kind::node || !map_.is_leaving(from.node))
    return context_->scenario.rounds.mode == round_mode::async;
  const auto& node = nodes_.at(from.node);
  const auto half_grace = std::chrono::duration<double>(node.grace).count() / 2.0;
  return journal.rounds_with_work() == 0 || node.leaving->seconds() > half_grace;
}

/// Counts rounds that another host has to rerun.
void placement_state::count_rerun(const shard_location& host, const shard_journal& journal) {
  if (host.where == shard_location::kind::node)
    records_->change(host.node, [&](node_record& record) { record.rounds_rerun += journal.rounds_with_work(); });
}

void placement_state::forward(shard_id shard) {
  auto& journal = journals_.at(shard.value);
  for (auto& command : journal.take_commands())
    send(map_.location_of(shard), shard, std::move(command));
  for (auto& report : journal.take_reports())
    self_->send(peers_.scheduler, std::move(report));
}

void placement_state::send(shard_location to, shard_id shard, shard_journal::command order) {
  if (to.where == shard_location::kind::local)
    std::visit([&](auto& command) { self_->send(peers_.local.at(shard.value), std::move(command)); }, order);
  else {
    if (const auto* const wave = std::get_if<start_rounds>(&order))
      for (const auto& given : wave->assignments)
        if (validator_.is_sampled(given.id) && validator_.begin(given.id, shard))
          peers_.replay(given);
    pool_->send(to.node, encode(nodes_.at(to.node), order));
    keep_polling();
  }
}

archive placement_state::encode(node_state& node, shard_journal::command& command) const {
  archive message;
  auto kind = node_message::start;
  if (auto* const wave = std::get_if<start_rounds>(&command)) {
    message(kind);
    serialize_wave(message, *wave, *node.tensors);
    auto forgotten = node.tensors->end_message();
    message(forgotten);
  } else if (auto* const released = std::get_if<release>(&command)) {
    message(kind = node_message::release);
    serialize_wave(message, *released);
  } else {
    message(kind = node_message::abandon);
    serialize_wave(message, std::get<abandon>(command));
  }
  return message;
}

void placement_state::keep_polling() {
  if (awake_.extend())
    self_->send(self_, poll_tick{});
}

// -- nodes -----------------------------------------------------------------------------------------------------------

void placement_state::on_change(const node_status_change& change) {
  while (nodes_.size() < pool_->size()) {
    nodes_.emplace_back();
    map_.add();
  }
  switch (change.event) {
  case node_event::joined:
    return join(change.node);
  case node_event::leaving:
    return leave(change.node, change.grace);
  case node_event::lost:
    return on_node_lost(change.node, change.reason);
  }
}

void placement_state::join(node_number number) {
  auto& node = nodes_.at(number);
  const auto view = pool_->view(number);
  const bool is_back = node.away.has_value();
  records_->change(number,
                   [&](node_record& record) { record.disconnected_seconds += is_back ? node.away->seconds() : 0.0; });
  node = {.tensors = std::make_unique<run_tensor_cache>(tuning::node_tensor_bytes)};
  map_.join(number, view.workers);
  if (!view.is_initial)
    warn(fmt::format("node {} {}, with {} workers", view.address, is_back ? "is back" : "has joined", view.workers));
  assign_orphaned_shards();
}

void placement_state::leave(node_number number, std::chrono::milliseconds grace) {
  if (!map_.is_connected(number))
    return;
  nodes_.at(number).leaving.emplace();
  nodes_.at(number).grace = grace;
  warn(fmt::format("node {} leaves; its shards move to other hosts", pool_->view(number).address));
  map_.leave(number);
  move_shards_from(number);
}

/// Moves the shards of a leaving node if possible, and releases the node once it has none.
void placement_state::move_shards_from(node_number number) {
  for (std::uint32_t s = 0; s < journals_.size(); ++s)
    if (map_.location_of({s}) == shard_location{.where = shard_location::kind::node, .node = number}) {
      return_to_preferred({s});
      forward({s});
    }
  end_leave_if_empty(number);
}

/// If the node is leaving: moves a shard away from it if possible, and releases the node once it has no shards.
void placement_state::drain(shard_id shard, node_number number) {
  if (!map_.is_connected(number) || !map_.is_leaving(number))
    return;
  return_to_preferred(shard);
  forward(shard);
  end_leave_if_empty(number);
}

void placement_state::end_leave_if_empty(node_number number) {
  if (!map_.is_connected(number) || !map_.is_leaving(number) || map_.hosts_shards(number))
    return;
  static_cast<void>(map_.on_node_lost(number)); // the node has no shards, so no shard becomes an orphan
  pool_->release(number);
}

void placement_state::on_node_lost(node_number number, const std::string& reason) {
  if (!map_.is_connected(number)) // the node has left or was dropped
    return;
  const auto orphaned = map_.on_node_lost(number);
  for (const auto shard : orphaned) {
    count_rerun({.where = shard_location::kind::node, .node = number}, journals_.at(shard.value));
    journals_.at(shard.value).host_lost();
    held_.at(shard.value).clear();
  }
  nodes_.at(number).away.emplace();
  const auto view = pool_->view(number);
  records_->change(number, [&](node_record& record) {
    ++record.disconnects;
    if (view.is_dropped)
      record.rejection_reason = reason;
  });
  warn(fmt::format("node {} is lost: it {}; its {} shards move to other hosts{}", view.address, reason, orphaned.size(),
                   view.is_dropped ? ", and it is not used again" : ""));
  assign_orphaned_shards();
}

void placement_state::assign_orphaned_shards() {
  for (const auto shard : map_.assign_orphaned_shards()) {
    journals_.at(shard.value).host_found();
    forward(shard);
  }
}

/// Timer. Moves shards off nodes whose grace period is half over. If the run is interrupted, ends the programs of all
/// nodes, and ends the run itself if a shard has no host.
void placement_state::check_nodes() {
  if (context_->interrupts && context_->interrupts->load() > 0) {
    if (!std::exchange(interrupted_, true))
      pool_->interrupt();
    for (std::uint32_t s = 0; s < journals_.size(); ++s)
      if (map_.location_of({s}).where == shard_location::kind::unassigned) // no host would ever reply for this shard
        return self_->quit(caf::make_error(run_errc::interrupted, std::string(interrupted_text)));
  }
  for (node_number n = 0; n < nodes_.size(); ++n)
    if (map_.is_connected(n) && map_.is_leaving(n))
      move_shards_from(n);
  self_->delayed_send(self_, node_check_interval, node_tick{});
}

} // namespace mneme
