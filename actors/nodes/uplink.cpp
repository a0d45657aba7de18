#include "actors/nodes/uplink.hpp"
#include "runtime/base/failure_of.hpp"
#include "runtime/federation/carry.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

uplink_state::uplink_state(uplink_actor::pointer self, run_context_ref context, uplink_hooks hooks)
    : self_(self), context_(std::move(context)), hooks_(std::move(hooks)) {}

uplink_actor::behavior_type uplink_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) {
    hooks_.fail("has asked for what cannot be done: " + caf::to_string(down.reason));
  });
  return {
      [this](worker_peers& peers) {
        workers_ = std::move(peers.workers);
        for (const auto& worker : workers_)
          self_->monitor(worker);
      },
      [this](wave_report& wave) { report(wave); },
      [this](const node_frame& in) { take(in); },
      [this](look_after_nodes) {
        wakes_later_ = false;
        wake_later();
      },
  };
}

void uplink_state::report(wave_report& wave) {
  archive message;
  auto kind = node_message::report;
  node_figures figures{.heard = heard_, .busy_ns = context_->busy_ns->load()};
  message(kind)(figures);
  carry(message, wave, tensors_);
  hooks_.send(std::move(message));
  wake_later();
}

/// Starts a timer that wakes the paused workers once the waiting results have been sent.
void uplink_state::wake_later() {
  constexpr auto looks_again = std::chrono::milliseconds(5);
  if (wakes_later_)
    return;
  if (context_->gate->is_full()) {
    wakes_later_ = true;
    self_->delayed_send(self_, looks_again, look_after_nodes{});
  } else if (context_->gate->take_waiting()) {
    for (const auto& worker : workers_)
      self_->send(worker, next_batch{});
  }
}

void uplink_state::take(const node_frame& in) {
  const auto why = failure_of([&] {
    auto content = reader_of(in.content);
    content.onto(c10::Device(context_->device));
    auto kind = node_message::start;
    content(kind);
    take(kind, content);
    content.expect_end();
    hooks_.consumed(in.content->size());
  });
  if (why.empty())
    return;
  hooks_.fail("sends a message that " + why);
  self_->quit();
}

void uplink_state::take(node_message kind, archive& content) {
  if (kind == node_message::start) {
    start_rounds wave;
    std::vector<digest128> forgotten;
    carry(content, wave, tensors_);
    check(wave);
    content(forgotten);
    tensors_.forget(forgotten);
    ++heard_;
    pass_on(std::move(wave));
  } else if (kind == node_message::release) {
    release command;
    carry(content, command);
    pass_on(std::move(command));
  } else if (kind == node_message::abandon) {
    abandon rounds;
    carry(content, rounds);
    pass_on(std::move(rounds));
  } else {
    throw archive_error("has no place here");
  }
}

/// Throws archive_error if the wave names a client, task, class or round that the run does not have. The wave comes
/// from another process.
void uplink_state::check(const start_rounds& wave) const {
  const auto& run = *context_;
  const auto tasks = run.tasks->tasks.size();
  const auto lies_within = [&](const class_range& classes) {
    return 0 <= classes.low && classes.low <= classes.high && classes.high <= run.tasks->classes;
  };
  for (const auto& assigned : wave.assignments) {
    if (assigned.client.value >= static_cast<std::uint64_t>(run.population->size()))
      throw archive_error("has an assignment for a client that there is not");
    const auto& place = assigned.in->place;
    if (assigned.task.value >= tasks || place.task.value >= tasks || !lies_within(place.opened) ||
        !lies_within(place.current))
      throw archive_error("has an assignment of a task, or of classes, that there are not");
    if (place.round_of_task < 0 || place.round_of_task >= place.rounds_of_task)
      throw archive_error("has an assignment of a round that its task does not have");
  }
}

template <class Command>
void uplink_state::pass_on(Command command) {
  if (command.to.value >= static_cast<std::uint64_t>(context_->shards))
    throw archive_error("is for a shard that there is not");
  const auto host = command.to.value % static_cast<std::uint32_t>(context_->hosts);
  self_->send(workers_.at(host), std::move(command));
}

} // namespace mneme
