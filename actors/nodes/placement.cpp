#include "actors/nodes/placement.hpp"
#include "runtime/base/tuning.hpp"
#include "runtime/federation/carry.hpp"
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>
#include <sys/random.h>
namespace mneme {
namespace {

constexpr auto node_check_interval = std::chrono::milliseconds(500);

std::vector<std::int64_t> workers_of(node_pool& pool) {
  std::vector<std::int64_t> workers;
  for (node_number n = 0; n < pool.size(); ++n)
    workers.push_back(pool.view(n).workers);
  return workers;
}

/// Selects the sampled rounds. Drawn by each process, so that a node cannot know the sample; no result depends on it.
std::uint64_t draw_sample_secret() {
  std::uint64_t secret = 0;
  static_cast<void>(::getrandom(&secret, sizeof secret, 0));
  return secret;
}

} // namespace

placement_state::placement_state(placement_actor::pointer self, run_context_ref context,
                                 std::shared_ptr<node_pool> nodes, std::shared_ptr<node_records> records,
                                 placement_peers peers)
    : self_(self), context_(std::move(context)), pool_(std::move(nodes)), records_(std::move(records)),
      peers_(std::move(peers)), map_(static_cast<std::size_t>(context_->shards), workers_of(*pool_),
                                     context_->scenario.worker.without_nodes == lonely_run::here),
      validator_(context_, draw_sample_secret()), held_(static_cast<std::size_t>(context_->shards)),
      nodes_(pool_->size()) {
  for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(context_->shards); ++s) {
    journals_.emplace_back(shard_id{s}, *context_->population);
    journals_.back().host_found();
  }
  for (auto& node : nodes_)
    node.tensors = std::make_unique<run_side_tensors>(tuning::node_tensor_bytes);
}

placement_actor::behavior_type placement_state::make_behavior() {
  self_->delayed_send(self_, node_check_interval, look_after_nodes{});
  return {
      [this](start_rounds& wave) { on_command(std::move(wave)); },
      [this](release& command) { on_command(std::move(command)); },
      [this](abandon& rounds) { on_command(std::move(rounds)); },
      [this](wave_report& report) { on_local_report(report); },
      [this](const node_frame& in) { on_frame(in); },
      [this](const node_change& change) { on_change(change); },
      [this](replay_report& outcome) { on_replay(outcome); },
      [this](look_after_nodes) { check_nodes(); },
      [this](look_for_frames) {
        if (awake_.goes_on())
          self_->send(self_, look_for_frames{});
      },
  };
}

// -- from the scheduler -----------------------------------------------------------------------------------------------

template <class Command>
void placement_state::on_command(Command command) {
  const auto shard = command.to;
  if constexpr (std::is_same_v<Command, abandon>)
    for (const auto id : command.assignments)
      validator_.forget(id);
  bring_home(shard);
  journals_.at(shard.value).take(shard_journal::command(std::move(command)));
  forward(shard);
}

/// A shard goes to where it belongs when it is idle. Where the server steps as uploads come it hardly ever is: there
/// its rounds begin again at home, as after a loss, while nobody waits for them. On a device that would change bits.
void placement_state::bring_home(shard_id shard) {
  auto& journal = journals_.at(shard.value);
  const bool has_pauses = context_->scenario.rounds.mode == round_mode::sync || context_->device != "cpu";
  const auto before = map_.place_of(shard);
  if (journal.is_idle()) {
    if (!map_.bring_home(shard))
      return;
    journal.host_lost();
    journal.host_found();
  } else if (!has_pauses && journal.is_quiet() && map_.bring_home(shard)) {
    send(before, shard, journal.change_host());
  }
}

void placement_state::forward(shard_id shard) {
  auto& journal = journals_.at(shard.value);
  for (auto& command : journal.take_commands())
    send(map_.place_of(shard), shard, std::move(command));
  for (auto& report : journal.take_reports())
    self_->send(peers_.scheduler, std::move(report));
}

void placement_state::send(shard_place to, shard_id shard, shard_journal::command order) {
  if (to.where == shard_place::kind::here)
    std::visit([&](auto& command) { self_->send(peers_.here.at(shard.value), std::move(command)); }, order);
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
    carry(message, *wave, *node.tensors);
    auto forgotten = node.tensors->end_message();
    message(forgotten);
  } else if (auto* const released = std::get_if<release>(&command)) {
    message(kind = node_message::release);
    carry(message, *released);
  } else {
    message(kind = node_message::abandon);
    carry(message, std::get<abandon>(command));
  }
  return message;
}

void placement_state::keep_polling() {
  if (awake_.extend())
    self_->send(self_, look_for_frames{});
}

// -- nodes that come and go -------------------------------------------------------------------------------------------

/// Nodes may have been named, or left, since the last look.
void placement_state::update_list() {
  while (nodes_.size() < pool_->size()) {
    nodes_.push_back({.has_joined = false});
    map_.add();
  }
  for (node_number n = 0; n < nodes_.size(); ++n)
    if (!map_.is_there(n) && !pool_->view(n).is_named) {
      map_.dismiss(n);
      nodes_[n].has_joined = nodes_[n].is_refused = false;
    }
}

void placement_state::on_change(const node_change& change) {
  update_list();
  if (change.event == node_event::lost)
    return lose(change.node, change.reason);
  auto& node = nodes_.at(change.node);
  node.tensors = std::make_unique<run_side_tensors>(tuning::node_tensor_bytes);
  node.busy_ns = 0;
  const auto view = pool_->view(change.node);
  map_.find(change.node, view.workers);
  records_->change(change.node,
                   [&](node_record& record) { record.away_seconds += node.away ? node.away->seconds() : 0.0; });
  node.away.reset();
  if (std::exchange(node.has_joined, true))
    warn("node " + view.address + " is back");
  else
    warn(fmt::format("node {} takes part, with {} workers", view.address, view.workers));
  place_homeless();
}

void placement_state::lose(node_number number, const std::string& reason) {
  if (!map_.is_there(number)) { // it still cannot be reached
    auto& node = nodes_.at(number);
    if (!node.has_joined && !std::exchange(node.is_refused, true) && pool_->view(number).is_named)
      warn("node " + pool_->view(number).address + " takes no part yet: it " + reason);
    return;
  }
  const auto homeless = map_.lose(number);
  for (const auto shard : homeless) {
    journals_.at(shard.value).host_lost();
    held_.at(shard.value).clear();
  }
  nodes_.at(number).away.emplace();
  const auto view = pool_->view(number);
  records_->change(number, [&](node_record& record) {
    ++record.losses;
    if (view.is_dropped)
      record.wrong = reason;
  });
  warn(fmt::format("node {} is lost: it {}; its {} shards go on elsewhere{}", view.address, reason, homeless.size(),
                   view.is_dropped ? ", and nothing of it is taken any more" : ""));
  place_homeless();
}

void placement_state::place_homeless() {
  for (const auto shard : map_.place_homeless()) {
    journals_.at(shard.value).host_found();
    forward(shard);
  }
}

/// Nodes that were lost may be back; programs of all nodes end where the run is to end.
void placement_state::check_nodes() {
  update_list();
  for (node_number n = 0; n < nodes_.size(); ++n)
    if (!map_.is_there(n))
      pool_->reconnect(n);
  if (context_->interrupts && context_->interrupts->load() > 0) {
    if (!std::exchange(interrupted_, true))
      pool_->interrupt();
    for (std::uint32_t s = 0; s < journals_.size(); ++s)
      if (map_.place_of({s}).where == shard_place::kind::nowhere) // nobody would ever answer
        return self_->quit(caf::make_error(run_errc::interrupted, std::string(interrupted_text)));
  }
  if (has_only_dropped_nodes())
    return self_->quit(caf::make_error(
        run_errc::round_failed, std::string("no node is left whose answers are taken, and worker.without_nodes = "
                                            "\"wait\" lets nobody else compute; resume the run with other nodes")));
  self_->delayed_send(self_, node_check_interval, look_after_nodes{});
}

/// The run waits for nodes, and all of them were rejected.
bool placement_state::has_only_dropped_nodes() const {
  if (context_->scenario.worker.without_nodes != lonely_run::wait)
    return false;
  bool any_dropped = false;
  for (node_number n = 0; n < nodes_.size(); ++n) {
    const auto view = pool_->view(n);
    if (view.is_named && !view.is_dropped)
      return false;
    any_dropped = any_dropped || view.is_dropped;
  }
  return any_dropped;
}

} // namespace mneme
