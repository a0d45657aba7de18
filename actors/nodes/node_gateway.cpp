#include "actors/nodes/node_gateway.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/federation/wave_serialization.hpp"
#include <caf/typed_event_based_actor.hpp>
namespace mneme {

node_gateway_state::node_gateway_state(node_gateway_actor::pointer self, run_context_ref context,
                                       node_gateway_hooks hooks)
    : self_(self), context_(std::move(context)), hooks_(std::move(hooks)) {}

node_gateway_actor::behavior_type node_gateway_state::make_behavior() {
  self_->set_down_handler([this](const caf::down_msg& down) {
    hooks_.fail("sent a command that a worker of this node could not execute: " + caf::to_string(down.reason));
  });
  return {
      [this](worker_links& peers) {
        workers_ = std::move(peers.workers);
        for (const auto& worker : workers_)
          self_->monitor(worker);
      },
      [this](wave_report& wave) { report(wave); },
      [this](const node_frame& in) { take(in); },
      [this](node_tick) {
        wakes_later_ = false;
        wake_later();
      },
  };
}

void node_gateway_state::report(wave_report& wave) {
  archive message;
  auto kind = node_message::report;
  node_counters figures{.messages_handled = messages_handled_, .busy_ns = context_->busy_ns->load()};
  message(kind)(figures);
  serialize_wave(message, wave, tensors_);
  hooks_.send(std::move(message));
  wake_later();
}

/// Starts a timer that wakes the paused workers once the waiting results have been sent.
void node_gateway_state::wake_later() {
  constexpr auto looks_again = std::chrono::milliseconds(5);
  if (wakes_later_)
    return;
  if (context_->gate->is_full()) {
    wakes_later_ = true;
    self_->delayed_send(self_, looks_again, node_tick{});
  } else if (context_->gate->take_waiting()) {
    for (const auto& worker : workers_)
      self_->send(worker, next_batch{});
  }
}

void node_gateway_state::take(const node_frame& in) {
  const auto error_text = exception_message_of([&] {
    auto content = reader_of(in.content);
    content.onto(c10::Device(context_->device));
    auto kind = node_message::start;
    content(kind);
    take(kind, content);
    content.expect_end();
    hooks_.consumed(in.content->size());
  });
  if (error_text.empty())
    return;
  hooks_.fail("sends a message that " + error_text);
  self_->quit();
}

void node_gateway_state::take(node_message kind, archive& content) {
  if (kind == node_message::start) {
    start_rounds wave;
    std::vector<digest128> forgotten;
    serialize_wave(content, wave, tensors_);
    check(wave);
    content(forgotten);
    tensors_.forget(forgotten);
    ++messages_handled_;
    forward_command(std::move(wave));
  } else if (kind == node_message::release) {
    release command;
    serialize_wave(content, command);
    forward_command(std::move(command));
  } else if (kind == node_message::abandon) {
    abandon rounds;
    serialize_wave(content, rounds);
    forward_command(std::move(rounds));
  } else {
    throw archive_error("is not valid in this state");
  }
}

/// Throws archive_error if the wave names a client, task, class or round that the run does not have. The wave comes
/// from another process.
void node_gateway_state::check(const start_rounds& wave) const {
  const auto& run = *context_;
  const auto tasks = run.tasks->tasks.size();
  const auto lies_within = [&](const class_range& classes) {
    return 0 <= classes.low && classes.low <= classes.high && classes.high <= run.tasks->classes;
  };
  for (const auto& assigned : wave.assignments) {
    if (assigned.client.value >= static_cast<std::uint64_t>(run.population->size()))
      throw archive_error("has an assignment for an unknown client");
    const auto& info = assigned.in->info;
    if (assigned.task.value >= tasks || info.task.value >= tasks || !lies_within(info.seen_classes) ||
        !lies_within(info.current_classes))
      throw archive_error("has an assignment of an unknown task or of unknown classes");
    if (info.round_of_task < 0 || info.round_of_task >= info.rounds_of_task)
      throw archive_error("has an assignment of an unknown round");
  }
}

template <class Command>
void node_gateway_state::forward_command(Command command) {
  if (command.to.value >= static_cast<std::uint64_t>(context_->shards))
    throw archive_error("is for an unknown shard");
  const auto host = command.to.value % static_cast<std::uint32_t>(context_->hosts);
  self_->send(workers_.at(host), std::move(command));
}

} // namespace mneme
